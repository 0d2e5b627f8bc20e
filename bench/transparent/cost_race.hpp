// The ways in which a program can run take turns, and what each run costs is compared with the run
// of the first way in the same round.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/kit/stats.hpp"
#include "bench/kit/suite.hpp"
#include "bench/transparent/ways.hpp"

namespace haul::bench {

struct RunCost {
  double wall_ns = 0, cpu_ns = 0, peak_bytes = 0;  // 0: not known
};

// For how long the ways of one program take turns, and how often at least and at most.
struct RaceLength {
  double budget_ns;
  unsigned least_rounds, most_rounds;
};

// The costs of one way, an entry for each round.
struct WayCosts {
  Samples wall_ns, cpu_ns, peak_bytes;
};

// Runs every way once in each round, in an order that rotates. The first round warms up: it decides
// nothing.
std::vector<WayCosts> race_costs(std::size_t ways, const RaceLength& length,
                                 const std::function<RunCost(std::size_t way)>& run);

// Adds a row for each way but the first: wall_ratio, cpu_ratio and rss_ratio to the first one's,
// with quartiles; a ratio whose costs are not known is left out.
void add_cost_rows(std::vector<Row>& rows, const std::string& program,
                   const std::vector<ProgramWay>& ways, const std::vector<WayCosts>& costs);

}  // namespace haul::bench
