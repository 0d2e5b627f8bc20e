// Can measured figures be believed, and can they still? Pure functions of figures and of how they
// came about.
#pragma once

#include <cstdint>

#include "plan/calibration.hpp"

namespace haul::tune {

// How the measuring went. Shares are from 0 to 1.
struct Quality {
  std::uint64_t measured_at_s = 0;  // Unix time
  double ran_share = 0;     // of the time for which the measuring thread wanted a CPU, it had one
  double stolen_share = 0;  // of the CPUs' time, a virtual machine's host took away; 0: not known
  double spread = 0;        // the widest distance of a line figure's quartiles, by its median
};

struct Measured {
  plan::Calibration figures;
  Quality quality;
};

// Why these figures are those of a disturbed machine, as a clause ("the CPUs were busy with other
// work"); nullptr: they can be believed. Of the figures the order of the caches is looked at, as
// measured: a copy within them cannot be slower than one from memory.
const char* distrust(const Measured& measured) noexcept;

// The figures with the order that noise may have turned over put right: no cache is slower than
// what lies below it.
plan::Calibration in_order(const plan::Calibration& figures) noexcept;

// What is seen of the machine now; 0: not known.
struct Seen {
  std::uint64_t now_s = 0;
  double round_trip_ns = 0;
  double hot_line_ns = 0;
};

// Why trusted figures are to be measured anew, as a clause; nullptr: they need not. They are 30
// days old, or what is seen speaks against them by a factor: the machine's speed (2) not sooner
// than ten minutes after they were made, the distance (3) not sooner than an hour, so that
// processes on unlike cores do not take turns at it.
const char* outdated(const Measured& stored, const Seen& seen) noexcept;

// Seconds until a disturbed measurement is repeated, after so many in a row (1 and up): from 10 to
// 640; 0: not any more.
unsigned repeat_after_s(unsigned disturbed) noexcept;

}  // namespace haul::tune
