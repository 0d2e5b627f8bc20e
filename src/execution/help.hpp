// Waiting, which is helping: a waiter claims chunks that nobody has begun and moves them itself.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "execution/wait_pace.hpp"
#include "request/ring.hpp"

namespace haul {

// Waits until the tenancy has ended and returns its code, or timed_out when deadline_ns (on
// now_ns()'s clock) is over first. Seq must have been published.
Code wait_for(Ring& ring, std::uint64_t seq, std::uint64_t deadline_ns) noexcept;

// Waits until bytes [from, to) of it are visible (ok), or it has ended (its code), or timed_out as
// wait_for() says.
Code wait_for_range(Ring& ring, std::uint64_t seq, std::size_t from, std::size_t to,
                    std::uint64_t deadline_ns) noexcept;

// HAUL_MOVER_PATIENCE_MS: how long the process waits for requests that make no progress, where it
// cannot help.
std::uint64_t mover_patience_ns() noexcept;

void drain(Ring& ring, std::uint64_t end) noexcept;

}  // namespace haul
