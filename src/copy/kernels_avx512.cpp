// The inner loops at level avx512: 64-byte vectors, four a step.
#include <immintrin.h>

#include "copy/kernels.hpp"

namespace haul::copy {
namespace {

constexpr std::size_t vector_bytes = 64;
constexpr std::size_t step_bytes = 4 * vector_bytes;

struct Step {
  __m512i a, b, c, d;
};

[[gnu::always_inline, gnu::target("avx512f,avx512vl,avx512bw")]] inline __m512i load_vector(
    const std::byte* from) noexcept {
  return _mm512_loadu_si512(reinterpret_cast<const __m512i*>(from));
}

[[gnu::always_inline, gnu::target("avx512f,avx512vl,avx512bw")]] inline void store_vector(
    std::byte* to, __m512i vector) noexcept {
  _mm512_storeu_si512(reinterpret_cast<__m512i*>(to), vector);
}

[[gnu::always_inline, gnu::target("avx512f,avx512vl,avx512bw")]] inline Step load_step(
    const std::byte* from) noexcept {
  return {load_vector(from), load_vector(from + vector_bytes), load_vector(from + 2 * vector_bytes),
          load_vector(from + 3 * vector_bytes)};
}

[[gnu::always_inline, gnu::target("avx512f,avx512vl,avx512bw")]] inline void store_step(
    std::byte* to, const Step& step) noexcept {
  store_vector(to, step.a);
  store_vector(to + vector_bytes, step.b);
  store_vector(to + 2 * vector_bytes, step.c);
  store_vector(to + 3 * vector_bytes, step.d);
}

[[gnu::always_inline, gnu::target("avx512f,avx512vl,avx512bw")]] inline void stream_step(
    std::byte* to, const Step& step) noexcept {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), step.a);
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to + vector_bytes), step.b);
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 2 * vector_bytes), step.c);
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 3 * vector_bytes), step.d);
}

[[gnu::always_inline]] inline void prefetch_step(const std::byte* from) noexcept {
  for (std::size_t i = 0; i < step_bytes; i += line_bytes) {
    __builtin_prefetch(from + prefetch_ahead_bytes + i, 0, 3);
  }
}

// The ends are loaded before the first store and stored after the last, so that the loop between
// may overwrite them in the source; it walks away from what it has yet to read.
[[gnu::target("avx512f,avx512vl,avx512bw")]] void move_forward(std::byte* dst, const std::byte* src,
                                                               std::size_t len) noexcept {
  const __m512i head = load_vector(src);
  const Step tail = load_step(src + len - step_bytes);
  std::size_t at = vector_bytes - (reinterpret_cast<std::uintptr_t>(dst) & (vector_bytes - 1));
  if (len >= prefetch_from_bytes) {
    const std::size_t end = len - prefetch_ahead_bytes - step_bytes;
    for (; at < end; at += step_bytes) {
      prefetch_step(src + at);
      store_step(dst + at, load_step(src + at));
    }
  }
  for (; at + step_bytes < len; at += step_bytes) store_step(dst + at, load_step(src + at));
  store_step(dst + len - step_bytes, tail);
  store_vector(dst, head);
}

[[gnu::target("avx512f,avx512vl,avx512bw")]] void move_backward(std::byte* dst,
                                                                const std::byte* src,
                                                                std::size_t len) noexcept {
  const Step head = load_step(src);
  const __m512i tail = load_vector(src + len - vector_bytes);
  std::size_t at = len - (reinterpret_cast<std::uintptr_t>(dst + len) & (vector_bytes - 1));
  for (; at > step_bytes; at -= step_bytes) {
    store_step(dst + at - step_bytes, load_step(src + at - step_bytes));
  }
  store_step(dst, head);
  store_vector(dst + len - vector_bytes, tail);
}

[[gnu::target("avx512f,avx512vl,avx512bw")]] void move(std::byte* dst, const std::byte* src,
                                                       std::size_t len) noexcept {
  if (len <= 2 * vector_bytes) {
    const __m512i a = load_vector(src), b = load_vector(src + len - vector_bytes);
    store_vector(dst, a);
    store_vector(dst + len - vector_bytes, b);
  } else if (len <= step_bytes) {
    const __m512i a = load_vector(src), b = load_vector(src + vector_bytes);
    const __m512i c = load_vector(src + len - 2 * vector_bytes);
    const __m512i d = load_vector(src + len - vector_bytes);
    store_vector(dst, a);
    store_vector(dst + vector_bytes, b);
    store_vector(dst + len - 2 * vector_bytes, c);
    store_vector(dst + len - vector_bytes, d);
  } else if (len <= 2 * step_bytes) {
    const Step front = load_step(src), back = load_step(src + len - step_bytes);
    store_step(dst, front);
    store_step(dst + len - step_bytes, back);
  } else if (reinterpret_cast<std::uintptr_t>(dst) - reinterpret_cast<std::uintptr_t>(src) >= len) {
    move_forward(dst, src, len);  // dst before src, or no overlap
  } else {
    move_backward(dst, src, len);
  }
}

[[gnu::target("avx512f,avx512vl,avx512bw")]] void stream_lines(std::byte* dst, const std::byte* src,
                                                               std::size_t len) noexcept {
  std::size_t at = 0;
  for (; at + step_bytes <= len; at += step_bytes) stream_step(dst + at, load_step(src + at));
  for (; at < len; at += vector_bytes) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(dst + at), load_vector(src + at));
  }
}

[[gnu::target("avx512f,avx512vl,avx512bw")]] void fill_lines(std::byte* dst, std::size_t len,
                                                             std::uint64_t word) noexcept {
  const __m512i vector = _mm512_set1_epi64(static_cast<long long>(word));
  const Step step{vector, vector, vector, vector};
  std::size_t at = 0;
  for (; at + step_bytes <= len; at += step_bytes) store_step(dst + at, step);
  for (; at < len; at += vector_bytes) store_vector(dst + at, vector);
}

[[gnu::target("avx512f,avx512vl,avx512bw")]] void stream_fill_lines(std::byte* dst, std::size_t len,
                                                                    std::uint64_t word) noexcept {
  const __m512i vector = _mm512_set1_epi64(static_cast<long long>(word));
  const Step step{vector, vector, vector, vector};
  std::size_t at = 0;
  for (; at + step_bytes <= len; at += step_bytes) stream_step(dst + at, step);
  for (; at < len; at += vector_bytes) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(dst + at), vector);
  }
}

}  // namespace

constinit const Kernels avx512_kernels{&move, &stream_lines, &fill_lines, &stream_fill_lines};

}  // namespace haul::copy
