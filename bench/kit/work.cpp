// The work around a copy, and its clock.
#include "bench/kit/work.hpp"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "base/machine/cpu.hpp"

namespace haul::bench {
namespace {

std::uint64_t sum_words(const std::byte* data, std::size_t bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, data + i, sizeof word);
    sum += word;
  }
  if (std::size_t tail = bytes % 8; tail != 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + bytes - tail, tail);
    sum += word;
  }
  return sum;
}

[[gnu::target("avx2")]] std::uint64_t sum_avx2(const std::byte* data, std::size_t bytes) {
  __m256i sums[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                     _mm256_setzero_si256()};
  std::size_t i = 0;
  for (; i + 128 <= bytes; i += 128) {
    for (std::size_t j = 0; j < 4; ++j) {
      const auto* at = reinterpret_cast<const __m256i*>(data + i + 32 * j);
      sums[j] = _mm256_add_epi64(sums[j], _mm256_loadu_si256(at));
    }
  }
  std::uint64_t words[16];
  std::memcpy(words, sums, sizeof words);
  return std::accumulate(words, words + 16, sum_words(data + i, bytes - i));
}

// The fewest ticks between two readings: what an empty span shows.
std::uint64_t clock_cost_ticks() {
  static const std::uint64_t cost = [] {
    std::uint64_t least = ~std::uint64_t{0};
    for (int i = 0; i < 2000; ++i) {
      std::uint64_t begin = fenced_ticks();
      least = std::min(least, fenced_ticks() - begin);
    }
    return least;
  }();
  return cost;
}

}  // namespace

[[gnu::noinline]] std::uint64_t compute(std::uint64_t steps) {
  std::uint64_t x = 88172645463325252u;
  for (std::uint64_t i = 0; i < steps; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    asm volatile("" : "+r"(x));
  }
  return x;
}

std::uint64_t compute_steps(double ns) {
  constexpr std::uint64_t probe_steps = 20000;
  double least_ns = 1e12;
  for (int i = 0; i < 9; ++i) {
    least_ns = std::min(least_ns, timed_ns([] { keep(compute(probe_steps)); }));
  }
  return static_cast<std::uint64_t>(ns * static_cast<double>(probe_steps) / least_ns) + 1;
}

std::uint64_t vector_sum(const std::byte* data, std::size_t bytes) {
  static const bool avx2 = cpu_features().avx2;
  if (avx2) return sum_avx2(data, bytes);
  return sum_words(data, bytes);
}

void glibc_memcpy(void* dst, const void* src, std::size_t bytes) {
  static void* (*volatile function)(void*, const void*, std::size_t) = std::memcpy;
  function(dst, src, bytes);
}

std::vector<std::uint32_t> random_lines(std::size_t bytes, std::size_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> lines(std::max<std::size_t>(bytes / line_bytes, 1));
  std::iota(lines.begin(), lines.end(), 0u);
  std::mt19937_64 random(seed);
  std::shuffle(lines.begin(), lines.end(), random);
  lines.resize(std::min(count, lines.size()));
  return lines;
}

[[gnu::noinline]] std::uint64_t read_lines(const std::byte* data,
                                           const std::vector<std::uint32_t>& lines) {
  std::uint64_t zero = 0;
  asm volatile("" : "+r"(zero));  // The compiler must not know that this is no real dependence.
  std::uint64_t carry = 0;
  for (std::uint32_t line : lines) {
    std::uint64_t word;
    std::memcpy(&word, data + line * line_bytes + carry, sizeof word);
    carry = word & zero;
  }
  return carry;
}

void link_circle(std::byte* data, std::size_t bytes, std::uint64_t seed) {
  std::vector<std::uint32_t> order = random_lines(bytes, bytes / line_bytes, seed);
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::uint64_t next = order[(i + 1) % order.size()] * line_bytes;
    std::memcpy(data + order[i] * line_bytes, &next, sizeof next);
  }
}

[[gnu::noinline]] std::uint64_t chase(const std::byte* data, std::size_t bytes) {
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < bytes / line_bytes; ++i) std::memcpy(&at, data + at, sizeof at);
  return at;
}

double span_ns(std::uint64_t ticks) {
  static const double ns_per_tick = 1.0 / ticks_per_ns();
  std::uint64_t cost = clock_cost_ticks();
  return ticks <= cost ? 0.0 : static_cast<double>(ticks - cost) * ns_per_tick;
}

}  // namespace haul::bench
