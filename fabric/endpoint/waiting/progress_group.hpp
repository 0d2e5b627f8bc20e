// The endpoints that a completion queue or a counter hears of: what it must progress when it is
// read, and what wakes the threads that sleep on it.
#pragma once

#include <vector>

namespace haul::fabric {

class EndpointState;
class WaitObject;

// Called under the domain's data lock.
class ProgressGroup {
 public:
  // Once for each endpoint, however often it is bound. `wait`: the wait object, if there is one.
  void add(EndpointState& endpoint, WaitObject* wait) noexcept;
  void remove(EndpointState& endpoint, WaitObject* wait) noexcept;
  bool empty() const noexcept { return members_.empty(); }

  bool progress() noexcept;  // true if anything happened
  // Nothing can be done before a doorbell rings.
  bool idle() const noexcept;
  // Doorbells ring from now on (for this group; counted).
  void arm() noexcept;
  void disarm() noexcept;

 private:
  std::vector<EndpointState*> members_;
  unsigned armed_ = 0;
};

}  // namespace haul::fabric
