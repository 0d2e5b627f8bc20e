// The inner loops at level portable: 16-byte vectors, which every x86-64 has; four a step.
#include <immintrin.h>

#include "copy/kernels.hpp"

namespace haul::copy {
namespace {

constexpr std::size_t vector_bytes = 16;
constexpr std::size_t step_bytes = 4 * vector_bytes;
static_assert(step_bytes == line_bytes);  // so whole lines leave no remainder

struct Step {
  __m128i a, b, c, d;
};

[[gnu::always_inline]] inline __m128i load_vector(const std::byte* from) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

[[gnu::always_inline]] inline void store_vector(std::byte* to, __m128i vector) noexcept {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), vector);
}

[[gnu::always_inline]] inline Step load_step(const std::byte* from) noexcept {
  return {load_vector(from), load_vector(from + vector_bytes), load_vector(from + 2 * vector_bytes),
          load_vector(from + 3 * vector_bytes)};
}

[[gnu::always_inline]] inline void store_step(std::byte* to, const Step& step) noexcept {
  store_vector(to, step.a);
  store_vector(to + vector_bytes, step.b);
  store_vector(to + 2 * vector_bytes, step.c);
  store_vector(to + 3 * vector_bytes, step.d);
}

[[gnu::always_inline]] inline void stream_step(std::byte* to, const Step& step) noexcept {
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), step.a);
  _mm_stream_si128(reinterpret_cast<__m128i*>(to + vector_bytes), step.b);
  _mm_stream_si128(reinterpret_cast<__m128i*>(to + 2 * vector_bytes), step.c);
  _mm_stream_si128(reinterpret_cast<__m128i*>(to + 3 * vector_bytes), step.d);
}

[[gnu::always_inline]] inline void prefetch_step(const std::byte* from) noexcept {
  for (std::size_t i = 0; i < step_bytes; i += line_bytes) {
    __builtin_prefetch(from + prefetch_ahead_bytes + i, 0, 3);
  }
}

// The ends are loaded before the first store and stored after the last, so that the loop between
// may overwrite them in the source; it walks away from what it has yet to read.
void move_forward(std::byte* dst, const std::byte* src, std::size_t len) noexcept {
  const __m128i head = load_vector(src);
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

void move_backward(std::byte* dst, const std::byte* src, std::size_t len) noexcept {
  const Step head = load_step(src);
  const __m128i tail = load_vector(src + len - vector_bytes);
  std::size_t at = len - (reinterpret_cast<std::uintptr_t>(dst + len) & (vector_bytes - 1));
  for (; at > step_bytes; at -= step_bytes) {
    store_step(dst + at - step_bytes, load_step(src + at - step_bytes));
  }
  store_step(dst, head);
  store_vector(dst + len - vector_bytes, tail);
}

void move(std::byte* dst, const std::byte* src, std::size_t len) noexcept {
  if (len <= 2 * step_bytes) {
    const Step front = load_step(src), back = load_step(src + len - step_bytes);
    store_step(dst, front);
    store_step(dst + len - step_bytes, back);
  } else if (reinterpret_cast<std::uintptr_t>(dst) - reinterpret_cast<std::uintptr_t>(src) >= len) {
    move_forward(dst, src, len);  // dst before src, or no overlap
  } else {
    move_backward(dst, src, len);
  }
}

void stream_lines(std::byte* dst, const std::byte* src, std::size_t len) noexcept {
  for (std::size_t at = 0; at < len; at += step_bytes) stream_step(dst + at, load_step(src + at));
}

void fill_lines(std::byte* dst, std::size_t len, std::uint64_t word) noexcept {
  const __m128i vector = _mm_set1_epi64x(static_cast<long long>(word));
  const Step step{vector, vector, vector, vector};
  for (std::size_t at = 0; at < len; at += step_bytes) store_step(dst + at, step);
}

void stream_fill_lines(std::byte* dst, std::size_t len, std::uint64_t word) noexcept {
  const __m128i vector = _mm_set1_epi64x(static_cast<long long>(word));
  const Step step{vector, vector, vector, vector};
  for (std::size_t at = 0; at < len; at += step_bytes) stream_step(dst + at, step);
}

}  // namespace

constinit const Kernels portable_kernels{&move, &stream_lines, &fill_lines, &stream_fill_lines};

}  // namespace haul::copy
