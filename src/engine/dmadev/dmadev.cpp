#include "engine/plugin.hpp"
#include "engine/registry.hpp"

namespace haul {
namespace {

class DmadevEngine final : public PluginEngine {
 public:
  constexpr DmadevEngine() noexcept
      : PluginEngine("libhaul-dmadev.so", "build haul where libdpdk-dev is installed",
                     Knob::engine_dmadev) {}

  const EngineFacts& facts() const noexcept override {
    static constexpr EngineFacts facts{
        .name = "dmadev", .synchronous = false, .device = true, .checked = false};
    return facts;
  }
};

constinit DmadevEngine engine;

}  // namespace

Engine& dmadev_engine() noexcept {
  return engine;
}

}  // namespace haul
