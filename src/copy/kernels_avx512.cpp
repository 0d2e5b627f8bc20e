// The inner loops at level avx512: 64-byte vectors.
#include "copy/loops.hpp"

namespace haul::copy {
namespace {

struct Avx512 {
  using Vector = __m512i;
  [[gnu::always_inline]] static Vector load(const std::byte* from) noexcept {
    return _mm512_loadu_si512(reinterpret_cast<const Vector*>(from));
  }
  [[gnu::always_inline]] static void store(std::byte* to, Vector vector) noexcept {
    _mm512_storeu_si512(reinterpret_cast<Vector*>(to), vector);
  }
  [[gnu::always_inline]] static void stream(std::byte* to, Vector vector) noexcept {
    _mm512_stream_si512(reinterpret_cast<Vector*>(to), vector);
  }
  [[gnu::always_inline]] static Vector repeat(std::uint64_t word) noexcept {
    return _mm512_set1_epi64(static_cast<long long>(word));
  }
};

}  // namespace

constinit const Kernels avx512_kernels = Loops<Avx512>::kernels;

}  // namespace haul::copy
