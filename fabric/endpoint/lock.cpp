// The slow side of WordLock.
#include "fabric/endpoint/lock.hpp"

#include "base/os/os.hpp"

namespace haul::fabric {

void WordLock::wait() noexcept {
  // Most critical sections last less than this.
  constexpr int spins = 200;
  for (int i = 0; i < spins; ++i) {
    __builtin_ia32_pause();
    std::uint32_t expected = unlocked;
    if (word_.load(std::memory_order_relaxed) == unlocked &&
        word_.compare_exchange_strong(expected, locked, std::memory_order_acquire)) {
      return;
    }
  }
  // A thread that may have slept marks the lock as contended, since others may be asleep as well.
  while (word_.exchange(contended, std::memory_order_acquire) != unlocked) {
    os::futex_wait(&word_, contended, 0);
  }
}

void WordLock::wake() noexcept {
  os::futex_wake(&word_, 1);
}

}  // namespace haul::fabric
