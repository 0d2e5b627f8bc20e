// How long a thread may sleep while a device works, of which is known about how long it still
// needs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace haul {

// How much later than asked for this process's sleeps have ended of late: the kernel's timer slack,
// and what a waking takes here. Relaxed: an estimate, shared by all threads.
class Lateness {
 public:
  std::uint64_t ns() const noexcept { return ns_.load(std::memory_order_relaxed); }
  void note(std::uint64_t asked_ns, std::uint64_t slept_ns) noexcept {
    const std::uint64_t late = slept_ns > asked_ns ? slept_ns - asked_ns : 0;
    ns_.store((7 * ns() + std::min(late, most_ns)) / 8, std::memory_order_relaxed);
  }
  // How long to sleep while a device needs left_ns more; 0: that is too short to sleep.
  std::uint64_t nap_ns(std::uint64_t left_ns) const noexcept {
    const std::uint64_t half = std::min(left_ns / 2, longest_nap_ns);
    return half > 2 * ns() ? half - ns() : 0;
  }

 private:
  // One sleep that another process's turn on the CPU has made long says little. A nap ends in time
  // for a device that has stopped on the way to be noticed.
  static constexpr std::uint64_t most_ns = 1'000'000, longest_nap_ns = 10'000'000;
  std::atomic<std::uint64_t> ns_{60'000};
};
inline constinit Lateness lateness;

}  // namespace haul
