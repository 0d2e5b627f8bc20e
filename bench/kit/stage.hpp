// The stage of a measurement: the caller pinned, the mover beside it and awake, their distance
// known.
#pragma once

#include <cstdint>
#include <memory>

#include "base/topology.hpp"

namespace haul::bench {

// Two cores are near when a cache line goes there and back in less.
inline constexpr double near_below_ns = 250;

// Starts or wakes the mover and waits (bounded) until it is awake; false if it does not get so.
bool wake_mover();

// The same for a process that has not submitted yet: gives the mover one copy and one sleep, so
// that it has loaded its figures and measured its distance to the caller. Some 20 ms.
bool settle_mover();

// Waits until the mover sleeps; false if it did not within its spin time and some more.
bool let_mover_sleep();

class Stage {
 public:
  // Starts the mover and pins the calling thread to the first allowed CPU that is not the mover's.
  Stage();
  ~Stage();  // The calling thread may run everywhere again.
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  const Topology& topology() const { return *topology_; }
  int caller_cpu() const { return caller_cpu_; }
  // The mover's CPU, or the one it would take; -1 on a machine with one.
  int partner_cpu() const { return partner_cpu_; }

  // Median time of a line's way to the partner core and back, ns; 0 without a partner.
  double round_trip_ns();

 private:
  std::unique_ptr<Topology> topology_;
  int caller_cpu_ = -1;
  int partner_cpu_ = -1;
};

}  // namespace haul::bench
