// Compares the median of the latest timed reads with that of the first ones.
#include "mover/cores/drift.hpp"

#include <algorithm>

#include "base/machine/clock.hpp"

namespace haul {
namespace {

constexpr std::uint64_t pause_ticks = 2'000'000;  // about a millisecond at any clock rate
// A read of a line in the reader's own cache takes about this long between two fenced clock reads,
// so a smaller difference means nothing.
constexpr double least_difference_ticks = 40;

}  // namespace

double DriftWatch::median(const std::uint32_t* ticks) noexcept {
  std::uint32_t sorted[window];
  std::copy_n(ticks, window, sorted);
  std::nth_element(sorted, sorted + window / 2, sorted + window);
  const std::uint32_t middle = sorted[window / 2];
  return middle;
}

void DriftWatch::sample(const std::atomic<bool>& owners_line) noexcept {
  const std::uint64_t begin = ticks();
  if (begin - last_ticks_ < pause_ticks) return;
  last_ticks_ = begin;
  const std::uint64_t before = fenced_ticks();
  (void)owners_line.load(std::memory_order_relaxed);
  const std::uint64_t elapsed = fenced_ticks() - before;
  add(static_cast<std::uint32_t>(std::min<std::uint64_t>(elapsed, 1u << 20)));
}

void DriftWatch::add(std::uint32_t elapsed_ticks) noexcept {
  if (taken_ < window) base_ticks_[taken_] = elapsed_ticks;
  latest_ticks_[taken_ % window] = elapsed_ticks;
  ++taken_;
}

bool DriftWatch::drifted() const noexcept {
  if (taken_ < 2 * window) return false;
  const double then = median(base_ticks_), now = median(latest_ticks_);
  return std::max(then, now) > 1.5 * std::min(then, now) &&
         std::max(then, now) - std::min(then, now) > least_difference_ticks;
}

}  // namespace haul
