// The slow sides of the locks.
#include "fabric/endpoint/lock.hpp"

#include "base/sync/barrier.hpp"

namespace haul::fabric {

void WordLock::wait() noexcept {
  waiting_.fetch_add(1, std::memory_order_relaxed);
  // Most critical sections last less than this.
  constexpr int spins = 200;
  for (int i = 0; i < spins; ++i) {
    __builtin_ia32_pause();
    std::uint32_t expected = unlocked;
    if (word_.load(std::memory_order_relaxed) == unlocked &&
        word_.compare_exchange_strong(expected, locked, std::memory_order_acquire)) {
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
  }
  // A thread that may have slept marks the lock as contended, since others may be asleep as well.
  while (word_.exchange(contended, std::memory_order_acquire) != unlocked) {
    os::futex_wait(&word_, contended, 0);
  }
  waiting_.fetch_sub(1, std::memory_order_relaxed);
}

void WordLock::wake() noexcept {
  os::futex_wake(&word_, 1);
}

bool BiasedLock::enter_as_guest(pid_t self) noexcept {
  if (DataLock::is_inside(calls())) return false;
  guest_.store(static_cast<std::uint32_t>(self), std::memory_order_relaxed);
  // Acquire: pairs with unlock(). The barrier stands for the fence that lock() does not make.
  if (asymmetric_barrier() && !DataLock::is_inside(calls_.load(std::memory_order_acquire)))
    return true;
  leave_as_guest();
  return false;
}

// Sequentially consistent, as is wait(): either this sees that the program's thread sleeps, or that
// thread sees that the guest has left.
void BiasedLock::leave_as_guest() noexcept {
  guest_.store(0, std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst) != 0) os::futex_wake(&guest_, 1);
}

void BiasedLock::wait() noexcept {
  // The guest looks after each step, and few take longer than this.
  constexpr int spins = 2000;
  for (int i = 0; i < spins; ++i) {
    if (guest_.load(std::memory_order_acquire) == 0) return;
    __builtin_ia32_pause();
  }
  // A child of a bare clone, whose parent's guest was inside, has none.
  const auto self = static_cast<std::uint32_t>(os::process_id());
  asleep_.store(1, std::memory_order_seq_cst);
  std::uint32_t guest = 0;
  while ((guest = guest_.load(std::memory_order_seq_cst)) == self) os::futex_wait(&guest_, self, 0);
  if (guest != 0) guest_.store(0, std::memory_order_relaxed);
  asleep_.store(0, std::memory_order_relaxed);
}

}  // namespace haul::fabric
