// How a thread waits for a word that another is about to change where no futex wakes it: it spins,
// then yields, then sleeps for longer and longer. The sleep is not only thrift: under SCHED_FIFO no
// yield lets an ordinary thread run on the same CPU, so a real-time waiter goes to sleep at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/cpu.hpp"
#include "base/os.hpp"

namespace haul {

class Backoff {
 public:
  explicit Backoff(unsigned spins = 1000, unsigned yields = 100) noexcept
      : spins_(spins), yields_(yields) {}

  // Between two looks at the word. Signal-safe.
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
