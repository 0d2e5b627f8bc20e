#include "engine/plugin.hpp"
#include "engine/registry.hpp"

namespace haul {

Engine& cuda_engine() noexcept {
  static constinit DevicePlugin engine("cuda", "libhaul-cuda.so",
                                       "install it beside libhaul.so.0 (haul builds it everywhere)",
                                       Knob::engine_cuda, DevicePlugin::Memory::apart);
  return engine;
}

}  // namespace haul
