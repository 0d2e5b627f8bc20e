// Waiting, which is helping: a waiter claims chunks that nobody has begun and moves them itself.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "request/ring.hpp"

namespace haul {

inline constexpr std::uint64_t no_deadline = UINT64_MAX;

// Until the tenancy has ended: its code. timed_out when the clock passes deadline_ns (now_ns()
// terms) first. Seq must have been published.
Code wait_for(Ring& ring, std::uint64_t seq, std::uint64_t deadline_ns) noexcept;

// Until bytes [from, to) of it are visible (ok), or it has ended: its code.
Code wait_for_range(Ring& ring, std::uint64_t seq, std::size_t from, std::size_t to) noexcept;

// HAUL_MOVER_PATIENCE_MS: for how long the process waits for requests of which nothing comes
// forward, where it cannot help.
std::uint64_t mover_patience_ns() noexcept;

// Until everything published below `end` has ended.
void drain(Ring& ring, std::uint64_t end) noexcept;

}  // namespace haul
