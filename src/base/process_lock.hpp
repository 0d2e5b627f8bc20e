// A lock that a child of fork finds free, whoever held it in the parent: the threads that are not
// in the child never come back to let it go. For short sections that are rarely entered.
//
// Its word is the holder's process. A process that finds another's there was forked while that one
// held it, and takes it over; what it guarded may be half-made then, and is the taker's to begin
// anew.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/backoff.hpp"
#include "base/os.hpp"

namespace haul {

class ProcessLock {
 public:
  constexpr ProcessLock() noexcept = default;

  // Held with signals blocked, since a handler that interrupts its holder may ask for it, and
  // waited for with signals open. The caller's mask is kept in *saved.
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
  // In a child of fork, by its only thread, which does not hold it.
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
