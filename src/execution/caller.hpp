// The caller's own thread as a mover: scheme SCNI of paper 000.
#pragma once

#include <cstddef>

#include "completion/ticket.hpp"
#include "request/request.hpp"
#include "request/ring.hpp"

namespace haul {

// Moves the request's bytes before it returns; notification and completion (room for it is
// reserved) included. A fence first waits for what the ring has pending. `ring` may be nullptr if
// the request wants neither fence nor completion.
Ticket run_inline(const Request& request, std::size_t engine, Ring* ring) noexcept;

}  // namespace haul
