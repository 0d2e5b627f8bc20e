#include "fabric/endpoint/waiting/progressed.hpp"

#include <algorithm>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/sync/lateness.hpp"
#include "fabric/endpoint/domain.hpp"

namespace haul::fabric {

bool Progressed::park() noexcept {
  Guard guard(owner_.lock);
  if (set_ == nullptr && wait_ != nullptr && parked_ == 0) wait_->quiet();
  ++parked_;
  group_.arm();
  progress();
  // Nothing rings when a copy is done, so the endpoints must be idle.
  if (!has_news() && group_.idle()) return true;
  --parked_;
  group_.disarm();
  return false;
}

void Progressed::unpark() noexcept {
  Guard guard(owner_.lock);
  --parked_;
  group_.disarm();
}

void Progressed::stop_trying() noexcept {
  tried_ = false;
  --parked_;
  group_.disarm();
}

bool Progressed::try_park() noexcept {
  if (wait_ == nullptr) return false;
  {
    Guard guard(owner_.lock);
    if (tried_) stop_trying();
  }
  if (!park()) return false;
  Guard guard(owner_.lock);
  tried_ = true;
  return true;
}

void Progressed::rest(const Deadline& deadline) noexcept {
  if (deadline.young()) return;
  if (park()) {
    wait_->sleep(deadline.remaining_ms());
    unpark();
    return;
  }
  sleep_through_copies(deadline);
}

// Copies by devices are under way, of whose end nothing tells: asleep for about half of the time
// that the first of them needs (paper 001, VI), and no longer than packets may wait.
void Progressed::sleep_through_copies(const Deadline& deadline) noexcept {
  constexpr std::uint64_t longest_ns = 1'000'000;
  std::uint64_t left_ns = 0;
  {
    Guard guard(owner_.lock);
    if (!has_news()) left_ns = group_.left_ns();
  }
  const std::uint64_t nap_ns = std::min(lateness.nap_ns(left_ns), longest_ns);
  if (nap_ns == 0 || deadline.passed()) return;
  const std::uint64_t begun = now_ns();
  os::sleep_ns(nap_ns);
  lateness.note(nap_ns, now_ns() - begun);
}

}  // namespace haul::fabric
