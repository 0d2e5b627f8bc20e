#include "engine/plugin.hpp"
#include "engine/registry.hpp"

namespace haul {

Engine& dsa_engine() noexcept {
  static constinit DevicePlugin engine(
      "dsa", "libhaul-dsa.so",
      "install haul-plugin-dsa, or build haul where libaccel-config-dev is installed",
      Knob::engine_dsa);
  return engine;
}

}  // namespace haul
