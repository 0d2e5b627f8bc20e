// The inner loops of a level (kernels.hpp), over its vectors, four a step. Each level compiles them
// in a file of its own, for its own instructions (cmake/HaulLibrary.cmake), so nothing here or in
// what it includes may be a function that the linker could share between levels.
#pragma once

#include <immintrin.h>

#include "copy/kernels.hpp"

namespace haul::copy {

// V: a `Vector`, in a level's own namespace, with load (unaligned), store (unaligned), stream
// (aligned, non-temporal) and repeat (fills it with a word).
template <class V>
class Loops {
  using Vector = typename V::Vector;
  static constexpr std::size_t vector_bytes = sizeof(Vector);
  static constexpr std::size_t step_bytes = 4 * vector_bytes;
  // Can whole lines leave a remainder after the last step?
  static constexpr bool lines_split_steps = step_bytes > line_bytes;

  static constexpr bool step_fits(std::size_t at, std::size_t len) noexcept {
    return lines_split_steps ? at + step_bytes <= len : at < len;
  }

  struct Step {
    Vector a, b, c, d;
  };

  [[gnu::always_inline]] static Step load_step(const std::byte* from) noexcept {
    return {V::load(from), V::load(from + vector_bytes), V::load(from + 2 * vector_bytes),
            V::load(from + 3 * vector_bytes)};
  }

  [[gnu::always_inline]] static void store_step(std::byte* to, const Step& step) noexcept {
    V::store(to, step.a);
    V::store(to + vector_bytes, step.b);
    V::store(to + 2 * vector_bytes, step.c);
    V::store(to + 3 * vector_bytes, step.d);
  }

  [[gnu::always_inline]] static void stream_step(std::byte* to, const Step& step) noexcept {
    V::stream(to, step.a);
    V::stream(to + vector_bytes, step.b);
    V::stream(to + 2 * vector_bytes, step.c);
    V::stream(to + 3 * vector_bytes, step.d);
  }

  [[gnu::always_inline]] static void prefetch_step(const std::byte* from) noexcept {
    for (std::size_t i = 0; i < step_bytes; i += line_bytes) {
      __builtin_prefetch(from + prefetch_ahead_bytes + i, 0, 3);
    }
  }

  static void move_forward(std::byte* dst, const std::byte* src, std::size_t len) noexcept;
  static void move_backward(std::byte* dst, const std::byte* src, std::size_t len) noexcept;
  static void move(std::byte* dst, const std::byte* src, std::size_t len) noexcept;
  static void move_in_order(std::byte* dst, const std::byte* src, std::size_t len) noexcept;

  static void stream_lines(std::byte* dst, const std::byte* src, std::size_t len) noexcept {
    std::size_t at = 0;
    for (; step_fits(at, len); at += step_bytes) stream_step(dst + at, load_step(src + at));
    for (; lines_split_steps && at < len; at += vector_bytes) {
      V::stream(dst + at, V::load(src + at));
    }
  }

  static void fill_lines(std::byte* dst, std::size_t len, std::uint64_t word) noexcept {
    const Vector vector = V::repeat(word);
    const Step step{vector, vector, vector, vector};
    std::size_t at = 0;
    for (; step_fits(at, len); at += step_bytes) store_step(dst + at, step);
    for (; lines_split_steps && at < len; at += vector_bytes) V::store(dst + at, vector);
  }

  static void stream_fill_lines(std::byte* dst, std::size_t len, std::uint64_t word) noexcept {
    const Vector vector = V::repeat(word);
    const Step step{vector, vector, vector, vector};
    std::size_t at = 0;
    for (; step_fits(at, len); at += step_bytes) stream_step(dst + at, step);
    for (; lines_split_steps && at < len; at += vector_bytes) V::stream(dst + at, vector);
  }

 public:
  static constexpr Kernels kernels{&move, &move_in_order, &stream_lines, &fill_lines,
                                   &stream_fill_lines};
};

// (Defined outside the class: functions defined inside count as inline, and GCC then keeps less of
// them together.)

// The ends are loaded before the first store and stored after the last, so the loop between may
// overwrite them in the source; it moves away from what it has yet to read.
template <class V>
void Loops<V>::move_forward(std::byte* dst, const std::byte* src, std::size_t len) noexcept {
  const Vector head = V::load(src);
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
  V::store(dst, head);
}

template <class V>
void Loops<V>::move_backward(std::byte* dst, const std::byte* src, std::size_t len) noexcept {
  const Step head = load_step(src);
  const Vector tail = V::load(src + len - vector_bytes);
  std::size_t at = len - (reinterpret_cast<std::uintptr_t>(dst + len) & (vector_bytes - 1));
  for (; at > step_bytes; at -= step_bytes) {
    store_step(dst + at - step_bytes, load_step(src + at - step_bytes));
  }
  store_step(dst, head);
  V::store(dst + len - vector_bytes, tail);
}

template <class V>
void Loops<V>::move(std::byte* dst, const std::byte* src, std::size_t len) noexcept {
  if (line_bytes < 2 * vector_bytes && len <= 2 * vector_bytes) {
    const Vector a = V::load(src), b = V::load(src + len - vector_bytes);
    V::store(dst, a);
    V::store(dst + len - vector_bytes, b);
  } else if (line_bytes < step_bytes && len <= step_bytes) {
    const Vector a = V::load(src), b = V::load(src + vector_bytes);
    const Vector c = V::load(src + len - 2 * vector_bytes);
    const Vector d = V::load(src + len - vector_bytes);
    V::store(dst, a);
    V::store(dst + vector_bytes, b);
    V::store(dst + len - 2 * vector_bytes, c);
    V::store(dst + len - vector_bytes, d);
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

template <class V>
void Loops<V>::move_in_order(std::byte* dst, const std::byte* src, std::size_t len) noexcept {
  if (len <= 2 * step_bytes) return move(dst, src, len);
  V::store(dst, V::load(src));
  std::size_t at = vector_bytes - (reinterpret_cast<std::uintptr_t>(dst) & (vector_bytes - 1));
  for (; at + step_bytes < len; at += step_bytes) store_step(dst + at, load_step(src + at));
  store_step(dst + len - step_bytes, load_step(src + len - step_bytes));
}

}  // namespace haul::copy
