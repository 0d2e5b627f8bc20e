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
  constexpr std::uint64_t spin_ns = 20'000;   // in vain, before a yield, where nobody waits
  constexpr std::uint64_t switch_ns = 1'500;  // a yield that took longer let somebody else run
  const std::uint64_t before = now_ns();
  const std::uint64_t spun = before - began_ns_.load(std::memory_order_relaxed);
  os::yield();
  const bool shared = now_ns() - before > switch_ns;
  const std::uint32_t limit = limit_.load(std::memory_order_relaxed);
  std::uint64_t next = least_polls;
  if (!shared) {
    // Towards the number of polls that take spin_ns, at most twice as many as now.
    next = std::min<std::uint64_t>(std::uint64_t{limit} * 2, std::uint64_t{limit} * spin_ns /
                                                                 std::max<std::uint64_t>(spun, 1));
    next = std::clamp<std::uint64_t>(next, least_polls, most_polls);
  }
  limit_.store(static_cast<std::uint32_t>(next), std::memory_order_relaxed);
  reset();
}

}  // namespace haul::fabric
