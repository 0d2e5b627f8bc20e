// A message's bytes for a device (paper 001, III-A): a copy within this process that its caller has
// divided from its own work already, so that the only question is whether a device does it better
// than the caller's CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "completion/ticket.hpp"

namespace haul {

// Gives a copy to a device, if the planner finds one that pays (or HAUL_PLAN_ENGINE names it), and
// returns when the first part is there: the CPU copies that meanwhile, so that whoever reads the
// message finds its beginning in the cache (001, VI). Whoever looks at the ticket drives the device
// for the rest. source_cpu: the CPU that has written the source, -1 if unknown; what a core with
// another last-level cache wrote costs the CPU what memory does. False: no device takes it, and
// nothing has been done.
bool offload(std::uintptr_t dst, std::uintptr_t src, std::size_t length, int source_cpu,
             Ticket* ticket) noexcept;

// About how long the device still needs that has chunks of this request; 0: none has, or nobody
// knows. Any thread.
std::uint64_t left_of(Ticket ticket) noexcept;

}  // namespace haul
