#include "base/thread/unforked.hpp"

#include <atomic>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/sync/backoff.hpp"

namespace haul {
namespace {

constinit std::atomic<std::uint32_t> sections{0}, forks{0};
// Forks that the calling thread has begun in this process and not ended. If one of its handlers
// forks during such a fork, the child carries on with both: it ends there only what it began there.
constinit thread_local std::uint32_t begun{0};

// With signals blocked, so that no handler sees one count without the other.
void count_fork(std::uint32_t step) noexcept {
  os::SignalMask saved;
  os::block_signals(&saved);
  begun += step;
  forks.fetch_add(step, std::memory_order_seq_cst);
  os::restore_signals(saved);
}

}  // namespace

Unforked::Unforked() noexcept {
  sections.fetch_add(1, std::memory_order_seq_cst);
  entered_ = forks.load(std::memory_order_seq_cst) == 0;
  if (!entered_) sections.fetch_sub(1, std::memory_order_release);
}

Unforked::~Unforked() {
  if (entered_) sections.fetch_sub(1, std::memory_order_release);
}

void begin_fork(std::uint64_t deadline_ns) noexcept {
  count_fork(1);
  for (Backoff backoff; sections.load(std::memory_order_seq_cst) != 0; backoff.pause()) {
    if (now_ns() >= deadline_ns) return;
  }
}

void end_fork() noexcept {
  if (begun != 0) count_fork(std::uint32_t{0} - 1);
}

void forget_forks() noexcept {
  begun = 0;
  sections.store(0, std::memory_order_relaxed);
  forks.store(0, std::memory_order_relaxed);
}

}  // namespace haul
