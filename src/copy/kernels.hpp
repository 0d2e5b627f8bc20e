// The table of inner loops that each level provides, and the edges that all of them share.
#pragma once

#include <emmintrin.h>

#include <cstddef>
#include <cstdint>

#include "base/pattern.hpp"

namespace haul::copy {

inline constexpr std::size_t line_bytes = 64;

// From here on the loops prefetch this far ahead. It gains 5 % where the source is in L2, L3 or
// DRAM; a longer reach evicts what is still needed, a shorter one comes late.
inline constexpr std::size_t prefetch_from_bytes = 4096;
inline constexpr std::size_t prefetch_ahead_bytes = 2048;

struct Kernels {
  // memmove; overlap in either direction is fine. len > 64.
  void (*move)(std::byte* dst, const std::byte* src, std::size_t len) noexcept;
  // No overlap: reads from the front to the back, each line once, and asks for none ahead. len
  // > 64.
  void (*move_in_order)(std::byte* dst, const std::byte* src, std::size_t len) noexcept;
  // As `move` by non-temporal stores, unfenced: dst line-aligned, len a multiple of a line, no
  // overlap.
  void (*stream_lines)(std::byte* dst, const std::byte* src, std::size_t len) noexcept;
  // dst line-aligned, len a multiple of a line; word as it lies in memory at dst. The second one
  // non-temporally, unfenced.
  void (*fill_lines)(std::byte* dst, std::size_t len, std::uint64_t word) noexcept;
  void (*stream_fill_lines)(std::byte* dst, std::size_t len, std::uint64_t word) noexcept;
};

extern const Kernels portable_kernels;
extern const Kernels avx2_kernels;
extern const Kernels avx512_kernels;

// ---- shared edges ----

// Not __builtin_memcpy: unoptimised, it becomes a call of memcpy(), underneath which this code
// runs.
template <typename Word>
struct [[gnu::packed, gnu::may_alias]] Unaligned {
  Word word;
};

template <typename Word>
[[gnu::always_inline]] inline Word load(const std::byte* from) noexcept {
  return reinterpret_cast<const Unaligned<Word>*>(from)->word;
}

template <typename Word>
[[gnu::always_inline]] inline void store(std::byte* to, Word word) noexcept {
  reinterpret_cast<Unaligned<Word>*>(to)->word = word;
}

[[gnu::always_inline]] inline __m128i load_16(const std::byte* from) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

[[gnu::always_inline]] inline void store_16(std::byte* to, __m128i vector) noexcept {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), vector);
}

// memmove of 0 to 64 bytes. Two overlapping halves a size class, every load before the first store.
[[gnu::always_inline]] inline void move_up_to_64(std::byte* dst, const std::byte* src,
                                                 std::size_t len) noexcept {
  if (len >= 16) {
    if (len > 32) {
      const __m128i a = load_16(src), b = load_16(src + 16);
      const __m128i c = load_16(src + len - 32), d = load_16(src + len - 16);
      store_16(dst, a);
      store_16(dst + 16, b);
      store_16(dst + len - 32, c);
      store_16(dst + len - 16, d);
      return;
    }
    const __m128i a = load_16(src), b = load_16(src + len - 16);
    store_16(dst, a);
    store_16(dst + len - 16, b);
  } else if (len >= 8) {
    const std::uint64_t a = load<std::uint64_t>(src), b = load<std::uint64_t>(src + len - 8);
    store(dst, a);
    store(dst + len - 8, b);
  } else if (len >= 4) {
    const std::uint32_t a = load<std::uint32_t>(src), b = load<std::uint32_t>(src + len - 4);
    store(dst, a);
    store(dst + len - 4, b);
  } else if (len != 0) {
    const std::byte a = src[0], b = src[len >> 1], c = src[len - 1];
    dst[0] = a;
    dst[len >> 1] = b;
    dst[len - 1] = c;
  }
}

// Fills 0 to 64 bytes; the second store of a class overlaps the first, with its phase corrected.
[[gnu::always_inline]] inline void fill_up_to_64(std::byte* dst, std::size_t len,
                                                 std::uint64_t word) noexcept {
  const std::uint64_t last = pattern_at(word, len);  // the 8 bytes that end at dst + len
  if (len >= 16) {
    const __m128i front = _mm_set1_epi64x(static_cast<long long>(word));
    const __m128i back = _mm_set1_epi64x(static_cast<long long>(last));
    if (len > 32) {
      store_16(dst + 16, front);
      store_16(dst + len - 32, back);
    }
    store_16(dst, front);
    store_16(dst + len - 16, back);
  } else if (len >= 8) {
    store(dst, word);
    store(dst + len - 8, last);
  } else if (len >= 4) {
    store(dst, static_cast<std::uint32_t>(word));
    store(dst + len - 4, static_cast<std::uint32_t>(last >> 32));
  } else {
    for (std::size_t i = 0; i < len; ++i) {
      dst[i] = static_cast<std::byte>((word >> (8 * i)) & 0xffu);
    }
  }
}

}  // namespace haul::copy
