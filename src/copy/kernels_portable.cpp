// The inner loops at level portable: 16-byte vectors, which every x86-64 has.
#include "copy/loops.hpp"

namespace haul::copy {
namespace {

struct Portable {
  using Vector = __m128i;
  [[gnu::always_inline]] static Vector load(const std::byte* from) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const Vector*>(from));
  }
  [[gnu::always_inline]] static void store(std::byte* to, Vector vector) noexcept {
    _mm_storeu_si128(reinterpret_cast<Vector*>(to), vector);
  }
  [[gnu::always_inline]] static void stream(std::byte* to, Vector vector) noexcept {
    _mm_stream_si128(reinterpret_cast<Vector*>(to), vector);
  }
  [[gnu::always_inline]] static Vector repeat(std::uint64_t word) noexcept {
    return _mm_set1_epi64x(static_cast<long long>(word));
  }
};

}  // namespace

constinit const Kernels portable_kernels = Loops<Portable>::kernels;

}  // namespace haul::copy
