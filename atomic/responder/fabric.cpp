#include "atomic/responder/fabric.hpp"

namespace haul::atomics {

bool open_fabric(const FabricOptions& options, FabricSides* sides, Error* error) noexcept {
  const auto open = reinterpret_cast<OpenFabric>(open_plugin(fabric_plugin, error));
  return open != nullptr && open(options, sides, error);
}

}  // namespace haul::atomics
