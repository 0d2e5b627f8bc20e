// The pattern of a fill: 8 bytes, repeated from the first byte of the destination.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul {

// The pattern rotated to the phase of a byte `offset` bytes further on (little endian). Inlined
// even by a compiler that does not optimise: the copy loops run underneath memcpy().
[[gnu::always_inline]] constexpr std::uint64_t pattern_at(std::uint64_t pattern,
                                                          std::size_t offset) noexcept {
  const unsigned bits = static_cast<unsigned>(offset & 7) * 8;
  return bits == 0 ? pattern : pattern >> bits | pattern << (64 - bits);
}

}  // namespace haul
