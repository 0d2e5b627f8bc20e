// The stage of a measurement: the caller is pinned, the mover is awake on a core beside it, and the
// distance of the two cores is known.
#pragma once

#include <cstdint>
#include <memory>

#include "base/machine/topology.hpp"

namespace haul::bench {

// Two cores are near if a cache line travels there and back in less time than this.
inline constexpr double near_below_ns = 250;

// Starts or wakes the mover and waits, for a limited time, until it is awake; false if it does not
// wake.
bool wake_mover();

// The same for a process that has not submitted yet. Gives the mover one copy and one sleep, in
// which it loads its calibration and measures its distance to the caller. Takes some 20 ms.
bool settle_mover();

// Waits until the mover sleeps; false if it does not within its spin time and some more.
bool let_mover_sleep();

class Stage {
 public:
  // Starts the mover and pins the calling thread to the first allowed CPU that is not the mover's.
  Stage();
  ~Stage();  // The calling thread may run on every CPU again.
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  const Topology& topology() const { return *topology_; }
  int caller_cpu() const { return caller_cpu_; }
  // The mover's CPU, or the one that it would take; -1 on a machine with one CPU.
  int partner_cpu() const { return partner_cpu_; }

  // Median time in ns for a cache line to travel to the partner core and back; 0 without a partner.
  double round_trip_ns();

 private:
  std::unique_ptr<Topology> topology_;
  int caller_cpu_ = -1;
  int partner_cpu_ = -1;
};

}  // namespace haul::bench
