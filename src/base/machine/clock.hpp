// Time: a monotonic clock for durations and the cycle counter for short ones.
#pragma once

#include <cstdint>

namespace haul {

// CLOCK_MONOTONIC in nanoseconds. A vDSO call, about 20 ns; async-signal-safe.
std::uint64_t now_ns() noexcept;

// This thread's CPU time in nanoseconds.
std::uint64_t thread_cpu_ns() noexcept;

// The cycle counter, not serialised.
std::uint64_t ticks() noexcept;

// The cycle counter, after all earlier loads and before all later ones: for timing a load or a
// call.
std::uint64_t fenced_ticks() noexcept;

// Ticks a nanosecond, measured once (about 1 ms, on first use; never on a submit). Thread-safe.
double ticks_per_ns() noexcept;

}  // namespace haul
