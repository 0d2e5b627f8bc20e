#include "engine/plugin.hpp"
#include "engine/registry.hpp"

namespace haul {

Engine& dmadev_engine() noexcept {
  static constinit DevicePlugin engine(
      "dmadev", "libhaul-dmadev.so",
      "install haul-plugin-dmadev, or build haul where libdpdk-dev is installed",
      Knob::engine_dmadev);
  return engine;
}

}  // namespace haul
