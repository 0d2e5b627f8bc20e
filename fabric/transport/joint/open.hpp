// The network of an endpoint, put together from what the knobs and the machine allow.
#pragma once

#include <memory>

#include "base/error.hpp"
#include "fabric/transport/network.hpp"

namespace haul::fabric {

// Opens a network: a socket for peers to connect to and, where HAUL_FABRIC_OFFNODE lets it, a
// listener for other nodes. Starts the process's control thread if it does not run yet. Every
// failure is an error with cause and remedy. `wanted`: the address that the endpoint shall have, of
// this host and without places for other nodes, which it then cannot reach; an address that names
// no endpoint (identity.hpp) means a new one.
Expected<std::unique_ptr<EndpointNetwork>> open_network(const Address& wanted) noexcept;

}  // namespace haul::fabric
