#include "engine/plugin.hpp"
#include "engine/registry.hpp"

namespace haul {

Engine& cuda_engine() noexcept {
  static constinit DevicePlugin engine("cuda", "libhaul-cuda.so",
                                       "install haul-plugin-cuda (haul builds it everywhere)",
                                       Knob::engine_cuda, DevicePlugin::Memory::apart);
  return engine;
}

}  // namespace haul
