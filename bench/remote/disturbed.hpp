// What the two bystander suites share: a lock that is used at several rates while a bystander works
// at its home.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/kit/disturbance.hpp"
#include "bench/remote/hosts/cpu_time.hpp"
#include "bench/remote/lock_pace.hpp"
#include "tools/units.hpp"

namespace haul::bench {

struct DisturbingContestant {
  std::string responder;
  ResponderChoice haul = {};                     // null name: frames take its place
  std::map<unsigned, Disturbance> figures = {};  // by rate
  Samples lost = {};                             // shares of a stream's bytes
  CpuTime cpu;
};

// How long a span lasts, how often each contestant has its turn, and the rates of operations.
struct DisturbancePlan {
  std::uint64_t span_ns;
  unsigned rounds;
  std::vector<unsigned> rates;

  DisturbancePlan(bool quick, std::vector<unsigned> rates_if_not_quick)
      : span_ns((quick ? 20 : 50) * tools::ns_per_ms),
        rounds(quick ? 1 : 3),
        rates(quick ? std::vector<unsigned>{10'000} : std::move(rates_if_not_quick)) {}
};

// speed(rate): measures the bystander's speed during a span in which the lock is used at that rate.
inline void disturb(DisturbingContestant& one, PacedLock& lock, const std::vector<unsigned>& rates,
                    const std::function<double(double rate)>& speed) {
  one.cpu.begin();
  for (unsigned rate : rates) {
    Disturbance& figures = one.figures[rate];
    figures.take_turns(rate, speed, [&] { return lock.operations(); });
    lock.take_times_us(&figures.times_us);
  }
  one.cpu.end();
}

}  // namespace haul::bench
