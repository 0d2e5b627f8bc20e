// What a program does around a copy: it computes in registers and reads what was copied; and the
// clock that times all this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/machine/clock.hpp"

namespace haul::bench {

// Keeps the compiler from dropping a result.
inline void keep(std::uint64_t value) {
  asm volatile("" : : "r"(value) : "memory");
}

// Arithmetic in registers, one dependent multiplication a step: touches no memory and no cache.
std::uint64_t compute(std::uint64_t steps);

// How many steps of compute() last `ns`. Calibrated at each call, because the clock frequency
// moves.
std::uint64_t compute_steps(double ns);

// The sum of all 64-bit words, read front to back with the widest loads of this CPU.
std::uint64_t vector_sum(const std::byte* data, std::size_t bytes);

// glibc's memcpy as a program would call it: never inlined, never merged with what follows.
void glibc_memcpy(void* dst, const void* src, std::size_t bytes);

// `count` distinct cache lines of a buffer in random order.
std::vector<std::uint32_t> random_lines(std::size_t bytes, std::size_t count, std::uint64_t seed);

// Reads one word of each line. Every address depends on the value read before, so this measures
// latency, not bandwidth.
std::uint64_t read_lines(const std::byte* data, const std::vector<std::uint32_t>& lines);

// Links all lines of a buffer into one random circle, which chase() walks once.
void link_circle(std::byte* data, std::size_t bytes, std::uint64_t seed);
std::uint64_t chase(const std::byte* data, std::size_t bytes);

// The nanoseconds of a span of fenced_ticks(), less the clock's own cost; never below 0.
double span_ns(std::uint64_t ticks);

template <class Body>
double timed_ns(Body&& body) {
  std::uint64_t begin = fenced_ticks();
  body();
  return span_ns(fenced_ticks() - begin);
}

inline constexpr std::size_t line_bytes = 64;

}  // namespace haul::bench
