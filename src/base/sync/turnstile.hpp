// Threads pass it one beside the other, each for a moment, until one thread closes it: then nobody
// is within, and whoever comes waits until it is open again.
//
// Who enters counts himself and then looks whether it is closed; who closes it says so and then
// looks at the count. Both are sequentially consistent, so at least one sees the other (Dekker).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/machine/clock.hpp"
#include "base/sync/backoff.hpp"

namespace haul {

class Turnstile {
 public:
  void enter() noexcept {
    for (Backoff backoff;; backoff.pause()) {
      within_.fetch_add(1);
      if (!closed_.load()) return;
      leave();
    }
  }
  // Release: pairs with close().
  void leave() noexcept { within_.fetch_sub(1, std::memory_order_release); }

  // Returns when nobody is within. False: somebody stays there for longer than that, and it is
  // closed to others only. One thread at a time.
  bool close(std::uint64_t patience_ns) noexcept {
    closed_.store(true);
    if (within_.load() == 0) return true;
    const std::uint64_t begun_ns = now_ns();
    for (Backoff backoff; within_.load() != 0; backoff.pause())
      if (now_ns() - begun_ns >= patience_ns) return false;
    return true;
  }
  void open() noexcept { closed_.store(false, std::memory_order_release); }

  // Nobody is within, and it is open: for a child of fork, which has none of the threads.
  void reset() noexcept {
    within_.store(0);
    closed_.store(false);
  }

 private:
  std::atomic<std::uint32_t> within_{0};
  std::atomic<bool> closed_{false};
};

// From its begin to its end this thread is within; nullptr: there is no turnstile.
class TurnstilePass {
 public:
  explicit TurnstilePass(Turnstile* turnstile) noexcept : turnstile_(turnstile) {
    if (turnstile_ != nullptr) turnstile_->enter();
  }
  ~TurnstilePass() {
    if (turnstile_ != nullptr) turnstile_->leave();
  }
  TurnstilePass(const TurnstilePass&) = delete;
  TurnstilePass& operator=(const TurnstilePass&) = delete;

 private:
  Turnstile* turnstile_;
};

}  // namespace haul
