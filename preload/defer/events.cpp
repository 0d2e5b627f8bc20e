#include "preload/defer/events.hpp"

#include "preload/defer/watched.hpp"

namespace haul::preload {
namespace {

constinit Turnstile turnstile;
constinit bool is_closed = false;  // under the lock

// A mover is within for a system call that moves 2 MiB at most; one that has lost its core, or
// whose source the kernel must fetch first, may be for longer, and must not hold up the program.
constexpr std::uint64_t patience_ns = 20'000'000;

}  // namespace

Turnstile& providers() noexcept {
  return turnstile;
}

void begin_events() noexcept {
  turnstile.reset();
  is_closed = false;
}

// Where no event other than somebody's touch waits, the kernel reports a touch first, so the
// turnstile can stay open.
NextEvent::NextEvent() noexcept {
  const int fd = userfault();
  if (!os::any_event(fd)) return;
  closes_ = !is_closed && os::changes_wait(fd);
  if (closes_) {
    is_closed = true;
    turnstile.close(patience_ns);
  }
  there_ = os::next_event(fd, &event_);
}

NextEvent::~NextEvent() {
  if (!closes_) return;
  is_closed = false;
  turnstile.open();
}

}  // namespace haul::preload
