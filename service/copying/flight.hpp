// One claimed chunk: moved in pieces, then reported.
#pragma once

#include <cstdint>

#include "service/clients/hub.hpp"

namespace haul::service {

// Moves pieces of the flight until their cost has reached `limit` or the chunk is done; then
// reports the chunk, which may end the request. Returns the cost, at least 1 for each piece. The
// flight is not active any more once its chunk is done or its client is condemned.
std::int64_t advance(Hub& hub, Client& client, std::uint32_t ring_index, Flight& flight,
                     std::int64_t limit);

}  // namespace haul::service
