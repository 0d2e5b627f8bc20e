#include "preload/born/lock.hpp"

#include "base/os/os.hpp"

namespace haul::preload {
namespace {

constexpr std::uint32_t others_wait = 1;

// What a thread is known by here: even, and never 0. (Its number in the system would take a system
// call.) Marks are given out again after 2^31 threads, of which no two would then fork and allocate
// at one moment.
[[gnu::tls_model("initial-exec")]] constinit thread_local std::uint32_t own_mark = 0;
constinit std::atomic<std::uint32_t> next_mark{2};

std::uint32_t mark() noexcept {
  while (own_mark == 0) own_mark = next_mark.fetch_add(2, std::memory_order_relaxed);
  return own_mark;
}

}  // namespace

bool HeapMutex::lock() noexcept {
  const std::uint32_t mine = mark();
  std::uint32_t seen = 0;
  // In one step with the mark, so that no handler ever finds it taken by nobody.
  if (word_.compare_exchange_strong(seen, mine, std::memory_order_acquire,
                                    std::memory_order_relaxed)) [[likely]]
    return true;
  while (true) {
    if ((seen & ~others_wait) == mine) return false;
    if (seen == 0) {
      // Who has waited cannot tell whether it was the only one.
      if (word_.compare_exchange_strong(seen, mine | others_wait, std::memory_order_acquire,
                                        std::memory_order_relaxed))
        return true;
      continue;
    }
    if ((seen & others_wait) != 0 ||
        word_.compare_exchange_strong(seen, seen | others_wait, std::memory_order_relaxed)) {
      os::futex_wait(&word_, seen | others_wait, 0);
      seen = word_.load(std::memory_order_relaxed);
    }
  }
}

void HeapMutex::unlock() noexcept {
  // Release: pairs with lock().
  if ((word_.exchange(0, std::memory_order_release) & others_wait) != 0) os::futex_wake(&word_, 1);
}

}  // namespace haul::preload
