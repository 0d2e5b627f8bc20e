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

  // From now on `wait`, which add() was not given, hears the doorbells of all.
  void watch(WaitObject& wait) noexcept;

  bool progress() noexcept;  // true if anything happened
  // Bytes may be on their way although the program calls nothing (Matcher::expects_bulk()).
  bool expects_bulk() noexcept;
  // How many processes of this node the endpoints know of, with this one.
  unsigned node_processes() const noexcept;
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
