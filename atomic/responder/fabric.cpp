#include "atomic/responder/fabric.hpp"

namespace haul::atomics {

Fabric* open_fabric(const FabricOptions& options, Error* error) noexcept {
  const auto open = reinterpret_cast<OpenFabric>(open_plugin(fabric_plugin, error));
  return open != nullptr ? open(options, error) : nullptr;
}

}  // namespace haul::atomics
