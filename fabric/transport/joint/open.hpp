// The network of an endpoint, put together from what the knobs and the machine allow.
#pragma once

#include <memory>

#include "base/error.hpp"
#include "fabric/transport/network.hpp"

namespace haul::fabric {

// Opens a network: a socket for peers to connect to, and (with knob HAUL_FABRIC_CORE) a core
// provider's endpoint. Starts the process's control thread if it does not run yet. Every failure is
// an error with cause and remedy. `wanted`: the address that it shall have, of this host and
// without places for other nodes, which it then cannot reach; one that names no endpoint
// (hello.hpp): a new one.
Expected<std::unique_ptr<EndpointNetwork>> open_network(const Address& wanted) noexcept;

}  // namespace haul::fabric
