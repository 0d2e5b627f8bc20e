// Single cache lines: is one in the cache, and put it out of it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::copy {

// The number of cycles that separates a read of a cached line from one of memory: midway between
// the two extremes that this machine shows. Found on first use, in some microseconds. Any thread;
// never waits.
std::uint32_t residency_threshold_cycles() noexcept;

// Times one read of the byte, which brings its line in if it was not.
bool is_resident(const std::byte* address, std::uint32_t threshold_cycles) noexcept;

// Does a range (not empty) lie in memory rather than in a cache? Times a read of two of its lines:
// about 30 ns if the first is cached, 250 ns if none is. A guess; an unmapped range faults.
bool in_memory(const void* range, std::size_t len) noexcept;

// Writes back and drops the lines from first up to end, both line-aligned. Unfenced: an sfence
// orders it.
void flush_lines(const std::byte* first, const std::byte* end) noexcept;

}  // namespace haul::copy
