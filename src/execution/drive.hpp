// The caller's own thread drives an asynchronous engine: scheme SCI of paper 000.
//
// Such a request is published as one for a mover is, but no bell is rung. While no mover is awake,
// every call that looks at its ticket, or at the completion queue of its ring, gives its channel
// what that has room for and polls. While one is awake it is the mover's, as all requests are.
#pragma once

#include <cstdint>

#include "engine/registry.hpp"
#include "request/ring.hpp"

namespace haul {

// A mover has woken, or falls asleep. Its last look at the rings comes after that, so each request
// is found by it, or by whoever looks at its ticket from then on.
void movers_drive(bool awake) noexcept;

// May a request be one that its caller drives?
inline bool is_driven(const Job& job) noexcept {
  return !job.service && is_asynchronous(job.engine);
}

// Gives a request that the calling thread has just published, and describes in `job`, to its
// channel. As the next ones, it does nothing while a mover is awake.
void drive_new(Ring& ring, const Job& job) noexcept;
// The same, but for the first chunk, which the calling thread's CPU moves beside the device.
void begin_driven(Ring& ring, const Job& job) noexcept;
// Drives one request, published on this ring, or all that have not ended; without those that
// may_cost_a_copy() unless they, too, are wanted. Any thread, which need not be the one that asked.
// Nothing while a mover is awake, or where the request's engine is synchronous. drive() says
// whether this thread has copied something for the engine, which may have more for it.
bool drive(Ring& ring, std::uint64_t seq) noexcept;
void drive_all(Ring& ring, bool costly_ones) noexcept;
// May driving this request take as long as copying its bytes would? Memory that a device with
// memory of its own does not know is copied, or registered, by whoever drives it.
bool may_cost_a_copy(Ring& ring, std::uint64_t seq) noexcept;
// Has one of them not ended that its caller must drive now?
bool any_driven(Ring& ring) noexcept;

}  // namespace haul
