// A lock that a child of fork finds free, whoever held it in the parent: the threads that are not
// in the child never come back to release it. For short sections that are rarely entered.
//
// Its word is the holder's process id, 0 while it is free: taking it is a compare-and-swap
// (acquire) from 0, releasing it a store of 0 (release). A process that finds another's id there
// was forked while that process held the lock, and takes the lock over by a compare-and-swap from
// that id. What the lock guards may then be half-changed, and the taker must rebuild it. A waiter
// spins and sleeps (Backoff); no futex is needed for such short sections.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/os/os.hpp"
#include "base/sync/backoff.hpp"

namespace haul {

class ProcessLock {
 public:
  constexpr ProcessLock() noexcept = default;

  // Held with signals blocked, since a handler that interrupts the holder may ask for it; waited
  // for with signals open. Saves the caller's mask in *saved.
  void lock(os::SignalMask* saved) noexcept {
    for (Backoff backoff(0, 100);; backoff.pause()) {
      os::block_signals(saved);
      if (try_lock()) return;
      os::restore_signals(*saved);
    }
  }
  void unlock(const os::SignalMask& saved) noexcept {
    forget();
    os::restore_signals(saved);
  }
  // For a child of fork, by its only thread, which does not hold it.
  void forget() noexcept { holder_.store(0, std::memory_order_release); }

 private:
  bool try_lock() noexcept {
    const auto self = static_cast<std::uint32_t>(os::process_id());
    std::uint32_t holder = 0;
    if (holder_.compare_exchange_strong(holder, self, std::memory_order_acquire)) return true;
    return holder != self &&
           holder_.compare_exchange_strong(holder, self, std::memory_order_acquire);
  }

  std::atomic<std::uint32_t> holder_{0};
};

}  // namespace haul
