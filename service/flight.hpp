// One claimed chunk: moved in pieces, then reported.
#pragma once

#include <cstdint>

#include "service/hub.hpp"

namespace haul::service {

// Moves pieces of the flight until their cost has reached `limit` or the chunk is through; then
// reports it, which may end the request. What it cost: at least one unit a piece. The flight is not
// active any more if the chunk is through or the client has been condemned.
std::int64_t advance(Hub& hub, Client& client, std::uint32_t ring_index, Flight& flight,
                     std::int64_t limit);

}  // namespace haul::service
