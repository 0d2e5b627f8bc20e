// Moves the clients' bytes in turns that no client can lengthen.
#pragma once

#include "service/clients/hub.hpp"

namespace haul::service {

// One turn of a client: at most its quantum of bytes, of all its rings in turn. True if there was
// anything to do. A client that has broken the rules is condemned. Sets hub.held_back where a
// fence keeps a request waiting for another that is not the service's.
bool serve(Hub& hub, Client& client);

// Bytes that a client may move in a turn.
std::int64_t quantum_of(unsigned weight);

}  // namespace haul::service
