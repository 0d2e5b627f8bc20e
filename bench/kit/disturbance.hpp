// What operations at a given rate cost a bystander at their home. Spans with and without operations
// take turns. A span is long compared with a scheduler's time slice (4 ms), so that operations
// cannot fall into step with it.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/kit/stats.hpp"
#include "bench/kit/suite.hpp"

namespace haul::bench {

struct Disturbance {
  Samples ratios, rates, idle, loaded, times_us;

  // speed(rate): measures the bystander's speed during a span in which that many operations a
  // second are asked for. operations(): how many there have been so far.
  void take_turns(unsigned rate, const std::function<double(double rate)>& speed,
                  const std::function<std::uint64_t()>& operations);
  // Writes the rate, the ratio with its quartiles, and the times of operations if there are any.
  void write_to(Row& row, unsigned asked_per_s) const;
};

}  // namespace haul::bench
