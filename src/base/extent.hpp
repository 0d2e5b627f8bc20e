// Spaces and extents: in whose memory bytes lie, and where.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul {

// 0 is this process; others are handles of the space table (engine/spaces.hpp).
using Space = std::uint32_t;
inline constexpr Space self_space = 0;

enum class Operation : std::uint8_t { copy = 0, fill = 1 };

struct Extent {
  Space space = self_space;
  std::uintptr_t address = 0;
  std::size_t length = 0;
};

// Does [address, address + length) leave the user half of the address space (47 bits, or 56 with
// 5-level paging)?
constexpr bool overflows(std::uintptr_t address, std::size_t length) noexcept {
  constexpr std::uintptr_t user_end = std::uintptr_t{1} << 56;
  return address >= user_end || length > user_end - address;
}

// Do two ranges of one space share a byte?
constexpr bool overlaps(std::uintptr_t a, std::uintptr_t b, std::size_t length) noexcept {
  return length != 0 && (a < b ? b - a < length : a - b < length);
}

}  // namespace haul
