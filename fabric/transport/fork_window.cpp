// Counting forks that are under way.
#include "fabric/transport/fork_window.hpp"

#include <atomic>

#include "base/clock.hpp"
#include "base/os.hpp"

namespace haul::fabric::fork_window {

namespace {

constexpr std::uint64_t own_patience_ns = 1'000'000'000;
constexpr std::uint64_t look_ns = 100'000;

// Several threads may fork at once. Sequentially consistent, as is `changed`: either a fork waits
// for who has the lock, or that one sees the fork.
constinit std::atomic<std::uint32_t> forks{0};
constinit std::atomic<bool> changed{false};

}  // namespace

bool Newcomer::is_open() noexcept {
  return forks.load(std::memory_order_seq_cst) != 0;
}

void Newcomer::wait(std::uint64_t most_ns) noexcept {
  for (const std::uint64_t begin = now_ns(); is_open() && now_ns() - begin < most_ns;) {
    os::sleep_ns(look_ns);
  }
}

void let_pass() noexcept {
  if (is_open()) Newcomer::wait(own_patience_ns);
}

void note_change() noexcept {
  if (is_open()) changed.store(true, std::memory_order_seq_cst);
}

void open() noexcept {
  forks.fetch_add(1, std::memory_order_seq_cst);
}

// Another fork's window may have been open before, and something changed within it since.
void stands_still() noexcept {
  if (forks.load(std::memory_order_seq_cst) == 1) changed.store(false, std::memory_order_seq_cst);
}

void close() noexcept {
  forks.fetch_sub(1, std::memory_order_seq_cst);
}

bool close_in_child() noexcept {
  forks.store(0, std::memory_order_seq_cst);
  return !changed.exchange(false, std::memory_order_seq_cst);
}

}  // namespace haul::fabric::fork_window
