// What operations at a given rate cost somebody else at their home. Spans with and without
// operations take turns; they are long beside a scheduler's slice (4 ms), which operations may fall
// in step with.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/kit/stats.hpp"
#include "bench/kit/suite.hpp"

namespace haul::bench {

struct Disturbance {
  Samples ratios, rates, idle, loaded, times_us;

  // speed(rate): how fast the other gets on during a span in which so many operations a second are
  // asked for. operations(): how many there were so far.
  void take_turns(unsigned rate, const std::function<double(double rate)>& speed,
                  const std::function<std::uint64_t()>& operations);
  // The rate, the ratio with its quartiles, and, where there are any, the times of operations.
  void write_to(Row& row, unsigned asked_per_s) const;
};

}  // namespace haul::bench
