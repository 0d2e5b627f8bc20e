// How a thread waits, where no futex wakes it, for a word that another is about to change: it
// spins, then yields, then sleeps for longer and longer. The sleep does not only save time: under
// SCHED_FIFO a yield never lets an ordinary thread run on the same CPU, so a real-time waiter
// sleeps at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/machine/cpu.hpp"
#include "base/os/os.hpp"

namespace haul {

class Backoff {
 public:
  explicit Backoff(unsigned spins = 1000, unsigned yields = 100) noexcept
      : spins_(spins), yields_(yields) {}

  // To be called between two looks at the word. Async-signal-safe.
  void pause() noexcept {
    if (spins_ != 0) {
      --spins_;
      cpu_relax();
      return;
    }
    if (!asked_) {
      asked_ = true;
      if (os::real_time_thread()) yields_ = 0;
    }
    if (yields_ != 0) {
      --yields_;
      os::yield();
      return;
    }
    os::sleep_ns(slice_ns_);
    slice_ns_ = std::min(2 * slice_ns_, longest_ns);
  }

 private:
  static constexpr std::uint64_t shortest_ns = 50'000, longest_ns = 1'000'000;

  unsigned spins_, yields_;
  bool asked_ = false;
  std::uint64_t slice_ns_ = shortest_ns;
};

}  // namespace haul
