// Copy and fill in plain loads and stores, for builds whose compiler instruments every access
// (base/sanitizer.hpp): vectors, string moves and flushes would hide the program's accesses.
#pragma once

#include "copy/kernels.hpp"

namespace haul::copy {

inline void checked_move(std::byte* dst, const std::byte* src, std::size_t len) noexcept {
  if (reinterpret_cast<std::uintptr_t>(dst) - reinterpret_cast<std::uintptr_t>(src) >= len) {
    std::size_t at = 0;
    for (; at + 8 <= len; at += 8) store(dst + at, load<std::uint64_t>(src + at));
    for (; at < len; ++at) dst[at] = src[at];
  } else {
    std::size_t at = len;
    for (; at >= 8; at -= 8) store(dst + at - 8, load<std::uint64_t>(src + at - 8));
    for (; at > 0; --at) dst[at - 1] = src[at - 1];
  }
}

inline void checked_fill(std::byte* dst, std::size_t len, std::uint64_t word) noexcept {
  std::size_t at = 0;
  for (; at + 8 <= len; at += 8) store(dst + at, word);
  for (; at < len; ++at) dst[at] = static_cast<std::byte>((word >> (8 * (at & 7))) & 0xffu);
}

}  // namespace haul::copy
