// Counting forks that are under way.
#include "fabric/transport/control/fork_window.hpp"

#include <atomic>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "fabric/transport/control/fork_count.hpp"

namespace haul::fabric::fork_window {

namespace {

constexpr std::uint64_t own_patience_ns = 1'000'000'000;
constexpr std::uint64_t look_ns = 100'000;

constinit ForkCount forks;
[[gnu::tls_model("initial-exec")]] constinit thread_local ForkCount::Own own_forks = 0;
constinit std::atomic<bool> changed{false};

}  // namespace

bool Newcomer::is_open() noexcept {
  return forks.all() != 0;
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
  forks.begin(own_forks);
}

// The flag stays if another fork's window is open: something may have been changed within that.
void stands_still() noexcept {
  if (forks.all() == 1) changed.store(false, std::memory_order_seq_cst);
}

void close() noexcept {
  forks.end(own_forks);
}

bool close_in_child() noexcept {
  const bool was_open = forks.forget(own_forks);
  return !changed.exchange(false, std::memory_order_seq_cst) && was_open;
}

}  // namespace haul::fabric::fork_window
