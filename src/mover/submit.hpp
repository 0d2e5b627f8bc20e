// The long road of a request: planned, then given to a mover or carried out by the caller.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"
#include "base/private.hpp"
#include "completion/ticket.hpp"
#include "plan/plan.hpp"
#include "request/request.hpp"
#include "request/rings.hpp"

namespace haul {

// Adds a request to the thread's burst: the bytes submitted since it last looked at a ticket.
inline void add_to_burst(const Request& request) noexcept {
  thread_slot.burst_bytes += plan::counted_bytes(request.operation, request.length);
}

// Plans a checked request, which the thread's burst contains already, and carries the plan out. A
// refusal (closed, again, no memory) is a decided ticket with *error filled in; the outcome of a
// request that the caller's thread ran is a decided ticket without an error. Blocks only to run it
// inline.
Ticket submit(const Request& request, Error* error) noexcept;

// Publishes a copy or a fill of whole pages for the engine `uffd` (base/private.hpp). False: no
// mover takes it now, and nothing has been done.
bool submit_deferred(const HaulPrivateDeferred& call, Ticket* ticket) noexcept;

// The same for the engine `procmem`: a copy of any bytes into private memory of this process, whose
// rights do not matter. Nobody but that engine may move them, so what it cannot move fails.
bool force_copy(std::uintptr_t dst, std::uintptr_t src, std::size_t length,
                Ticket* ticket) noexcept;

// What submit() would do, and why.
struct Explanation {
  plan::Plan plan;
  plan::Inputs inputs;
  plan::Reasons reasons;
};
void explain(const Request& request, Explanation* explanation) noexcept;

// Hooks that the first ring of a process sets: fork and exit handlers. Idempotent; called by
// submit() before it attaches a ring.
Ring* ring_for_submit(Error* error) noexcept;

// Finishes everything, stops the movers; submits are refused from now on.
void shut_down() noexcept;

}  // namespace haul
