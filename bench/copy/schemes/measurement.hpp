// A measurement of copies, case by case, which a suite makes in its own process, or has processes
// make that carry copies out in other ways (schemes.hpp).
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/copy/schemes/cpu_cost.hpp"
#include "bench/kit/cache.hpp"
#include "bench/kit/stats.hpp"
#include "bench/kit/suite.hpp"
#include "bench/kit/trial.hpp"

namespace haul::bench {

// What a measurement may use and how much of it is asked for.
struct CopyBench {
  CachePreparer& caches;
  bool quick = false;
  unsigned rounds = 1;  // so many processes share the repetitions
  // This process is one of a scheme's: CPU time is measured, and a caller that waits does not help,
  // so that the scheme's own speed shows.
  bool by_scheme = false;
  int partner_cpu = -1;  // of another core; -1: there is none

  // Waits for a copy, and returns its status.
  int wait(haul_ticket ticket) const;
  unsigned repetitions(std::size_t bytes, unsigned factor = 1) const {
    return std::max(factor * repetitions_of(bytes, quick) / rounds, 3u);
  }
};

// Samples by name; those that were measured side by side are in the same order.
struct Findings {
  WhoCopied mover;
  std::string copy_scheme = {};  // of haul_copy(), in split
  double engine_share = 0;       // of all bytes that engines moved, of the engine that is asked for
  std::map<std::string, Samples> samples;

  Samples& operator[](const std::string& name) { return samples[name]; }
  // Empty where there are none.
  const Samples& of(const std::string& name) const;
  void append(const Findings& more);
};

struct CopyMeasurement {
  const char* name;  // of its suite
  Findings (*measure)(const CopyBench& bench, const Case& one);
  Row (*row)(const Case& one, const Findings& findings);
};
extern const CopyMeasurement latency_measurement, bandwidth_measurement, hide_measurement,
    split_measurement, receive_measurement;

// The one of that name; throws CommandFailure if there is none.
const CopyMeasurement& measurement_named(const std::string& name);

// A copy whose CPU time is measured: starts and ends it, and returns a status. `meter` takes what
// it does meanwhile apart.
using CostedCopy = std::function<int(CpuMeter& meter)>;
// In a scheme's process: adds what such a copy costs (caller_cpu, mover_cpu, kernel_cpu,
// device_cpu) and how long it takes (wall).
void add_costs(const CopyBench& bench, CopyTrial& trial, const CostedCopy& copy,
               Findings& findings);
// The race of a copy by haul against memcpy ("haul", "memcpy"), and its costs. `planned` as
// race_memcpy() takes it; copy() ends the copy and returns a status.
template <class Copy>
Findings race_and_costs(const CopyBench& bench, CopyTrial& trial, const haul_request& planned,
                        unsigned repetitions, const Copy& copy) {
  const MemcpyRace race = race_memcpy(trial, planned, repetitions, copy);
  Findings findings;
  findings.mover = race.mover;
  findings["haul"] = race.haul;
  findings["memcpy"] = race.memcpy;
  add_costs(
      bench, trial, [&](CpuMeter&) { return copy(); }, findings);
  return findings;
}
// The same fields of a row, in ns, if there are such samples.
void put_costs(Row& row, const Findings& findings);

}  // namespace haul::bench
