#include "engine/plugin.hpp"
#include "engine/registry.hpp"

namespace haul {
namespace {

class NicEngine final : public PluginEngine {
 public:
  constexpr NicEngine() noexcept
      : PluginEngine("libhaul-nic.so", "build haul where clang and libbpf-dev are installed",
                     Knob::engine_nic) {}

  const EngineFacts& facts() const noexcept override {
    static constexpr EngineFacts facts{
        .name = "nic", .synchronous = false, .device = true, .checked = false};
    return facts;
  }
};

constinit NicEngine engine;

}  // namespace

Engine& nic_engine() noexcept {
  return engine;
}

}  // namespace haul
