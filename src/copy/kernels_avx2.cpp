// The inner loops at level avx2: 32-byte vectors.
#include "copy/loops.hpp"

namespace haul::copy {
namespace {

struct Avx2 {
  using Vector = __m256i;
  [[gnu::always_inline]] static Vector load(const std::byte* from) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const Vector*>(from));
  }
  [[gnu::always_inline]] static void store(std::byte* to, Vector vector) noexcept {
    _mm256_storeu_si256(reinterpret_cast<Vector*>(to), vector);
  }
  [[gnu::always_inline]] static void stream(std::byte* to, Vector vector) noexcept {
    _mm256_stream_si256(reinterpret_cast<Vector*>(to), vector);
  }
  [[gnu::always_inline]] static Vector repeat(std::uint64_t word) noexcept {
    return _mm256_set1_epi64x(static_cast<long long>(word));
  }
};

}  // namespace

constinit const Kernels avx2_kernels = Loops<Avx2>::kernels;

}  // namespace haul::copy
