// What the userfaultfd tells, one event at a time.
//
// The program goes on as soon as an event is read that says that some of its pages are given back
// (madvise()), and a mover that provided one of them afterwards would bring back what the program
// has just dropped. So movers pass a turnstile with every page that they provide, and it is closed
// from before such an event is read until it has been served. (As long as such an event waits to
// be read the kernel itself lets nobody provide pages.)
#pragma once

#include "base/os/pages/userfault.hpp"
#include "base/sync/turnstile.hpp"

namespace haul::preload {

// What movers pass.
Turnstile& providers() noexcept;
// For a child of fork: it has no movers, and serves no event.
void begin_events() noexcept;

// The next event, until it has been served. Under the lock of watched.hpp; one may be read while
// another is being served.
class NextEvent {
 public:
  NextEvent() noexcept;
  ~NextEvent();
  NextEvent(const NextEvent&) = delete;
  NextEvent& operator=(const NextEvent&) = delete;

  // Is there one?
  explicit operator bool() const noexcept { return there_; }
  const os::FaultEvent& operator*() const noexcept { return event_; }

 private:
  bool closes_ = false, there_ = false;
  os::FaultEvent event_;
};

}  // namespace haul::preload
