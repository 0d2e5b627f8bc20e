#include "engine/plugin.hpp"
#include "engine/registry.hpp"

namespace haul {
namespace {

class DsaEngine final : public PluginEngine {
 public:
  constexpr DsaEngine() noexcept
      : PluginEngine("libhaul-dsa.so", "build haul where libaccel-config-dev is installed",
                     Knob::engine_dsa) {}

  const EngineFacts& facts() const noexcept override {
    static constexpr EngineFacts facts{
        .name = "dsa", .synchronous = false, .device = true, .checked = false};
    return facts;
  }
};

constinit DsaEngine engine;

}  // namespace

Engine& dsa_engine() noexcept {
  return engine;
}

}  // namespace haul
