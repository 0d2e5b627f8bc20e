// The endpoints that report to a completion queue or a counter: reading it makes progress on them,
// and their doorbells wake the threads that sleep on it.
#pragma once

#include <cstdint>
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

  bool progress() noexcept;  // true if anything happened
  // Nothing can be done before a doorbell rings.
  bool idle() const noexcept;
  // If all that is under way is with devices: about how long the first needs, in ns; else 0.
  std::uint64_t left_ns() const noexcept;
  // Doorbells ring from now on (for this group; counted).
  void arm() noexcept;
  void disarm() noexcept;

 private:
  std::vector<EndpointState*> members_;
  unsigned armed_ = 0;
};

}  // namespace haul::fabric
