#include "bench/transparent/cost_race.hpp"

#include "base/machine/clock.hpp"

namespace haul::bench {
namespace {

void put_known(Row& row, const char* field, const Samples& with, const Samples& without) {
  if (median(without) > 0) put_ratio(row, field, ratio_of(with, without));
}

}  // namespace

std::vector<WayCosts> race_costs(std::size_t ways, const RaceLength& length,
                                 const std::function<RunCost(std::size_t way)>& run) {
  std::vector<WayCosts> all(ways);
  const std::uint64_t begun = now_ns();
  for (unsigned round = 0; round <= length.most_rounds; ++round) {
    if (round > length.least_rounds && static_cast<double>(now_ns() - begun) > length.budget_ns)
      break;
    for (std::size_t turn = 0; turn < ways; ++turn) {
      const std::size_t way = (turn + round) % ways;
      const RunCost cost = run(way);
      if (round == 0) continue;
      all[way].wall_ns.push_back(cost.wall_ns);
      all[way].cpu_ns.push_back(cost.cpu_ns);
      all[way].peak_bytes.push_back(cost.peak_bytes);
    }
  }
  return all;
}

void add_cost_rows(std::vector<Row>& rows, const std::string& program,
                   const std::vector<ProgramWay>& ways, const std::vector<WayCosts>& costs) {
  const WayCosts& without = costs.front();
  for (std::size_t way = 1; way < ways.size(); ++way) {
    const WayCosts& with = costs[way];
    Row row = {{"program", program},
               {"plan", ways[way].name},
               {"none_wall_ns", round1(median(without.wall_ns))},
               {"wall_ns", round1(median(with.wall_ns))}};
    put_known(row, "wall_ratio", with.wall_ns, without.wall_ns);
    put_known(row, "cpu_ratio", with.cpu_ns, without.cpu_ns);
    put_known(row, "rss_ratio", with.peak_bytes, without.peak_bytes);
    row["runs"] = with.wall_ns.size();
    rows.push_back(std::move(row));
  }
}

}  // namespace haul::bench
