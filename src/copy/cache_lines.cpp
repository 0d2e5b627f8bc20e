// Times reads between fences; flushes by the best instruction that the CPU has.
#include "copy/cache_lines.hpp"

#include <immintrin.h>

#include <atomic>

#include "base/machine/cpu.hpp"
#include "copy/kernels.hpp"

namespace haul::copy {
namespace {

constinit std::atomic<std::uint32_t> known_threshold_cycles{0};

// Never written, so flushing it does not disturb another thread's measurement for long.
alignas(line_bytes) constinit const std::byte probe_line[line_bytes]{};

// lfence on both sides of both clock reads: without them the read could move out of the interval.
std::uint32_t timed_read_cycles(const std::byte* address) noexcept {
  _mm_lfence();
  const std::uint64_t before = __builtin_ia32_rdtsc();
  _mm_lfence();
  (void)*static_cast<const volatile std::byte*>(address);
  _mm_lfence();
  const std::uint64_t after = __builtin_ia32_rdtsc();
  _mm_lfence();
  const std::uint64_t cycles = after - before;
  return cycles > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(cycles);
}

[[gnu::target("clflushopt")]] void flush_lines_unordered(const std::byte* first,
                                                         const std::byte* end) noexcept {
  for (; first < end; first += line_bytes) {
    // The intrinsic takes a mutable pointer, though the instruction changes no byte.
    _mm_clflushopt(const_cast<std::byte*>(first));
  }
}

}  // namespace

std::uint32_t residency_threshold_cycles() noexcept {
  // Relaxed: nothing else is published with the number, and every thread finds about the same one.
  std::uint32_t threshold = known_threshold_cycles.load(std::memory_order_relaxed);
  if (threshold != 0) [[likely]]
    return threshold;
  // The least of several reads for each extreme, since noise only ever adds.
  std::uint32_t hot_cycles = UINT32_MAX, cold_cycles = UINT32_MAX;
  for (int i = 0; i < 16; ++i) {
    const std::uint32_t cycles = timed_read_cycles(probe_line);
    if (cycles < hot_cycles) hot_cycles = cycles;
  }
  for (int i = 0; i < 16; ++i) {
    _mm_clflush(probe_line);
    _mm_mfence();
    const std::uint32_t cycles = timed_read_cycles(probe_line);
    if (cycles < cold_cycles) cold_cycles = cycles;
  }
  threshold = hot_cycles + (cold_cycles > hot_cycles ? (cold_cycles - hot_cycles) / 2 : 1);
  known_threshold_cycles.store(threshold, std::memory_order_relaxed);
  return threshold;
}

bool is_resident(const std::byte* address, std::uint32_t threshold_cycles) noexcept {
  return timed_read_cycles(address) < threshold_cycles;
}

bool in_memory(const void* range, std::size_t len) noexcept {
  const auto* bytes = static_cast<const std::byte*>(range);
  const std::uint32_t threshold = residency_threshold_cycles();
  // Not at the starts of pages, which prefetchers and neighbours touch more than the rest.
  return !is_resident(bytes + len / 8 * 3, threshold) &&
         !is_resident(bytes + len / 8 * 7, threshold);
}

void flush_lines(const std::byte* first, const std::byte* end) noexcept {
  if (cpu_features().clflushopt) {
    flush_lines_unordered(first, end);
  } else {
    // One at a time and several times slower, but every x86-64 has it.
    for (; first < end; first += line_bytes) _mm_clflush(first);
  }
}

}  // namespace haul::copy
