// What a program does around a copy: compute in registers, read what was copied; and how long it
// takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"

namespace haul::bench {

// Keeps the compiler from dropping a result.
inline void keep(std::uint64_t value) {
  asm volatile("" : : "r"(value) : "memory");
}

// Register arithmetic, one dependent multiplication a step: takes no memory and no cache.
std::uint64_t compute(std::uint64_t steps);

// Steps of compute() that last `ns`, by a calibration run now (the clock frequency moves).
std::uint64_t compute_steps(double ns);

// Sum of all 64-bit words, front to back, by the widest loads of this CPU.
std::uint64_t vector_sum(const std::byte* data, std::size_t bytes);

// glibc's memcpy, as a program reaches it: never inlined, never merged with what follows.
void glibc_memcpy(void* dst, const void* src, std::size_t bytes);

// `count` distinct cache lines of a buffer in random order.
std::vector<std::uint32_t> random_lines(std::size_t bytes, std::size_t count, std::uint64_t seed);

// Reads one word of each line, every address depending on the value before: latency, not bandwidth.
std::uint64_t read_lines(const std::byte* data, const std::vector<std::uint32_t>& lines);

// Links all lines of a buffer into one random circle; chase() walks it once.
void link_circle(std::byte* data, std::size_t bytes, std::uint64_t seed);
std::uint64_t chase(const std::byte* data, std::size_t bytes);

// Nanoseconds of a span of fenced_ticks(), the clock's own cost subtracted (not below 0).
double span_ns(std::uint64_t ticks);

template <class Body>
double timed_ns(Body&& body) {
  std::uint64_t begin = fenced_ticks();
  body();
  return span_ns(fenced_ticks() - begin);
}

inline constexpr std::size_t line_bytes = 64;

}  // namespace haul::bench
