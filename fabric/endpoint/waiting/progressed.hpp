// What a completion queue and a counter have in common: reading them makes progress on the
// endpoints that report to them, and threads that find nothing there may sleep until a doorbell of
// one of those endpoints rings.
//
// Going to sleep (park()): the endpoints' doorbells are armed first, then progress is made once
// more, and only if nothing has come by then may the thread sleep. What came before the doorbells
// were armed is seen by that progress, what comes later rings.
#pragma once

#include "fabric/endpoint/waiting/poll_backoff.hpp"
#include "fabric/endpoint/waiting/progress_group.hpp"
#include "fabric/endpoint/waiting/wait_object.hpp"

namespace haul::fabric {

class Domain;

class Progressed : public Waitable {
 public:
  Domain& owner() const noexcept { return owner_; }
  // Both under the data lock.
  void join(EndpointState& endpoint) noexcept { group_.add(endpoint, wait_); }
  void leave(EndpointState& endpoint) noexcept { group_.remove(endpoint, wait_); }
  bool park() noexcept final;
  void unpark() noexcept final;
  // fi_trywait(): parks until the next read or try_park().
  bool try_park() noexcept;

 protected:
  explicit Progressed(Domain& owner) noexcept : owner_(owner) {}
  ~Progressed() = default;

  // ---- under the data lock ----
  virtual void progress() noexcept = 0;
  // Whether there is anything for which a thread must not go to sleep now.
  virtual bool has_news() const noexcept = 0;
  void stop_trying() noexcept;

  // Sleeps once, unless the wait is so young that polling is cheaper, or something has come.
  void rest(const Deadline& deadline) noexcept;
  void sleep_through_copies(const Deadline& deadline) noexcept;

  Domain& owner_;
  unsigned parked_ = 0;
  bool tried_ = false;  // one of parked_ is try_park()'s
  PollBackoff backoff_;
  ProgressGroup group_;
};

}  // namespace haul::fabric
