#include "base/machine/clock.hpp"

#include <time.h>

#include <atomic>

#include "base/os/keep_errno.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace haul {

namespace {

std::uint64_t read_clock(clockid_t clock) noexcept {
  const KeepErrno keep;
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}

struct Instant {
  std::uint64_t ticks;
  std::uint64_t ns;
};

// Reads both clocks at one instant: takes the try that was shortest, so an interrupt between the
// two readings does no harm.
Instant read_both() noexcept {
  Instant best = {};
  std::uint64_t least = ~std::uint64_t{0};
  for (int i = 0; i < 8; ++i) {
    const std::uint64_t before = fenced_ticks();
    const std::uint64_t ns = now_ns();
    const std::uint64_t after = fenced_ticks();
    if (after - before < least) {
      least = after - before;
      best = {before + (after - before) / 2, ns};
    }
  }
  return best;
}

double measure_ticks_per_ns() noexcept {
  constexpr std::uint64_t window_ns = 1'000'000;
  const Instant start = read_both();
  while (now_ns() - start.ns < window_ns) {
  }
  const Instant end = read_both();
  // A counter that stands still or goes backwards is no measure.
  if (end.ticks <= start.ticks || end.ns <= start.ns) return 1.0;
  return static_cast<double>(end.ticks - start.ticks) / static_cast<double>(end.ns - start.ns);
}

// 0: not measured yet. Relaxed: the value stands for itself.
constinit std::atomic<double> measured_ticks_per_ns{0.0};

}  // namespace

std::uint64_t now_ns() noexcept {
  return read_clock(CLOCK_MONOTONIC);
}

std::uint64_t thread_cpu_ns() noexcept {
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

#if defined(__x86_64__)

std::uint64_t ticks() noexcept {
  return __rdtsc();
}

std::uint64_t fenced_ticks() noexcept {
  _mm_lfence();
  const std::uint64_t value = __rdtsc();
  _mm_lfence();
  return value;
}

#else

std::uint64_t ticks() noexcept {
  return now_ns();
}

std::uint64_t fenced_ticks() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint64_t value = now_ns();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return value;
}

#endif

double ticks_per_ns() noexcept {
  double value = measured_ticks_per_ns.load(std::memory_order_relaxed);
  if (value != 0.0) return value;
  // Threads that race here measure each for itself; the first one's figure is kept for all.
  const double mine = measure_ticks_per_ns();
  return measured_ticks_per_ns.compare_exchange_strong(value, mine, std::memory_order_relaxed)
             ? mine
             : value;
}

}  // namespace haul
