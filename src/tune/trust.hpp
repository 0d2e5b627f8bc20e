// Can measured figures be believed, and can they still? Pure functions of the figures and of how
// they were measured.
#pragma once

#include <cstdint>

#include "base/private.hpp"
#include "plan/calibration.hpp"

namespace haul::tune {

// How the measuring went. Shares are from 0 to 1.
struct Quality {
  std::uint64_t measured_at_s = 0;  // Unix time
  double ran_share = 0;             // the share of the CPU time it wanted that the thread got
  double stolen_share = 0;          // the CPUs' time that a virtual machine's host took; 0: unknown
  double spread = 0;                // the widest distance of a figure's quartiles, over its median
};

struct Measured {
  plan::Calibration figures;
  Quality quality;
  // The rings between cores that share the last-level cache, and between others; not measured in
  // the background, but by who exchanges messages (haul_private_keep_rings()).
  HaulPrivateRing near, far;
};

// Why these figures are those of a disturbed machine, as a clause ("the CPUs were busy with other
// work"); nullptr: they can be believed. Of the figures, only their order is looked at, as
// measured: a copy within the caches cannot be slower than one from memory.
const char* distrust(const Measured& measured) noexcept;

// The figures, with the order put right that noise may have reversed: no cache is slower than what
// lies below it.
plan::Calibration in_order(const plan::Calibration& figures) noexcept;

// What is seen of the machine now; 0: unknown.
struct Seen {
  std::uint64_t now_s = 0;
  double round_trip_ns = 0;
  double hot_line_ns = 0;
};

// Why trusted figures should be measured again, as a clause; nullptr: they need not be. They are
// more than 30 days old, or what is seen contradicts them by a factor: the machine's speed (2), at
// the earliest ten minutes after they were made, or the distance (3), at the earliest an hour
// after, so that processes on unlike cores do not replace each other's figures in turn.
const char* outdated(const Measured& stored, const Seen& seen) noexcept;

// Seconds until a disturbed measurement is repeated, after so many in a row (1 and up): from 10 to
// 640; 0: never again.
unsigned repeat_after_s(unsigned disturbed_runs) noexcept;

}  // namespace haul::tune
