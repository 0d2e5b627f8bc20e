#include "engine/plugin.hpp"
#include "engine/registry.hpp"

namespace haul {

Engine& nic_engine() noexcept {
  static constinit DevicePlugin engine(
      "nic", "libhaul-nic.so",
      "install haul-plugin-nic, or build haul where clang and libbpf-dev are installed",
      Knob::engine_nic);
  return engine;
}

}  // namespace haul
