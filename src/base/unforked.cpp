// Two counts.
#include "base/unforked.hpp"

#include <atomic>

#include "base/backoff.hpp"
#include "base/clock.hpp"

namespace haul {
namespace {

// Sequentially consistent, both: either the section sees the fork, or the fork sees the section.
constinit std::atomic<std::uint32_t> sections{0}, forks{0};

}  // namespace

Unforked::Unforked() noexcept {
  sections.fetch_add(1, std::memory_order_seq_cst);
  entered_ = forks.load(std::memory_order_seq_cst) == 0;
  if (!entered_) sections.fetch_sub(1, std::memory_order_release);
}

Unforked::~Unforked() {
  if (entered_) sections.fetch_sub(1, std::memory_order_release);
}

void begin_fork(std::uint64_t patience_ns) noexcept {
  forks.fetch_add(1, std::memory_order_seq_cst);
  const std::uint64_t begun = now_ns();
  for (Backoff backoff; sections.load(std::memory_order_seq_cst) != 0; backoff.pause()) {
    if (now_ns() - begun >= patience_ns) return;
  }
}

void end_fork() noexcept {
  forks.fetch_sub(1, std::memory_order_release);
}

void forget_forks() noexcept {
  sections.store(0, std::memory_order_relaxed);
  forks.store(0, std::memory_order_relaxed);
}

}  // namespace haul
