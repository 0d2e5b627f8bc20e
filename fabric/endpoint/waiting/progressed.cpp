#include "fabric/endpoint/waiting/progressed.hpp"

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
  if (deadline.young() || !park()) return;
  wait_->sleep(deadline.remaining_ms());
  unpark();
}

}  // namespace haul::fabric
