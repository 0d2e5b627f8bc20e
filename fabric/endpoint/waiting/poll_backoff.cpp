// Yielding, and learning from it.
#include "fabric/endpoint/waiting/poll_backoff.hpp"

#include <algorithm>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"

namespace haul::fabric {

void PollBackoff::begin() noexcept {
  began_ns_.store(now_ns(), std::memory_order_relaxed);
}

void PollBackoff::give_way() noexcept {
  const std::uint64_t before = now_ns();
  const std::uint64_t spun = before - began_ns_.load(std::memory_order_relaxed);
  os::yield();
  const std::uint32_t limit = limit_.load(std::memory_order_relaxed);
  limit_.store(limit_after(limit, spun, now_ns() - before), std::memory_order_relaxed);
  reset();
}

std::uint32_t PollBackoff::limit_after(std::uint32_t polls, std::uint64_t polled_ns,
                                       std::uint64_t away_ns) noexcept {
  constexpr std::uint64_t alone_ns = 1'500;        // a yield that took longer let another run
  constexpr std::uint64_t poller_ns = 500'000;     // one that waits as well is back before that
  constexpr std::uint64_t spin_ns = 20'000;        // in vain, before a yield, where nobody waits
  constexpr std::uint64_t dear_spin_ns = 100'000;  // the same where a yield costs a time slice
  std::uint64_t next = least_polls;
  polled_ns = std::max<std::uint64_t>(polled_ns, 1);
  if (away_ns <= alone_ns) {
    next = std::min<std::uint64_t>(std::uint64_t{polls} * 2, polls * spin_ns / polled_ns);
  } else if (away_ns >= poller_ns) {
    next = polls * dear_spin_ns / polled_ns;
  }
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(next, least_polls, most_polls));
}

}  // namespace haul::fabric
