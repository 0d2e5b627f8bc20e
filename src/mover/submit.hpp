// The long road of a request: planned, then given to a mover or carried out by the caller.
#pragma once

#include "base/error.hpp"
#include "completion/ticket.hpp"
#include "plan/plan.hpp"
#include "request/request.hpp"
#include "request/rings.hpp"

namespace haul {

// Adds a request to the thread's burst: what it has submitted since it last looked at a ticket.
inline void add_to_burst(const Request& request) noexcept {
  thread_slot.burst_bytes += plan::counted_bytes(request.operation, request.length);
}

// Plans a checked request, which the thread's burst contains already, and carries the plan out. A
// refusal (closed, again, no memory) is a decided ticket with *error filled in; so is the outcome
// of a request that the caller's thread ran, without. Blocks only to run it inline.
Ticket submit(const Request& request, Error* error) noexcept;

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
