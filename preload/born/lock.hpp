// The heap's lock, which knows its thread. A signal handler may fork while it interrupts malloc()
// or free(), and libc's fork() works there: a lock that did not know would wait for its own thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace haul::preload {

// Held while a thread forks; of static storage, where it is free.
class HeapMutex {
 public:
  // Waits until no other thread holds it. False: this thread holds it already, for what it does
  // below the signal handler that asks.
  bool lock() noexcept;
  void unlock() noexcept;
  // In a child of fork, whose only thread took it before the fork.
  void free_in_child() noexcept { word_.store(0, std::memory_order_relaxed); }

 private:
  // 0: free. Else its thread's mark, and whether others may wait.
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace haul::preload
