// lock: how long it takes to acquire and release a lock that one to eight nodes contend for (paper
// 002, Fig. 5 and 6). One loop on the client's core drives all members: processes that spin on a
// core together would measure the scheduler.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>

#include "bench/remote/columns.hpp"
#include "bench/remote/hosts/counter.hpp"
#include "bench/remote/hosts/cpu_time.hpp"
#include "bench/remote/lock_ring.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

constexpr unsigned most_contenders = 8;

struct LockFigures {
  Samples cycles_us, medians_us, rates, handed;  // of all cycles; one a round
};

// The home's responder is what is compared. In all contests the members' own words are therefore
// served in the same way, by XDP; and in one more contest by threads at both ends, as on hosts
// without XDP.
struct LockContestant {
  ResponderChoice home;
  const char* members;
  std::map<unsigned, LockFigures> figures = {};
  CpuTime cpu;
};

std::vector<LockContestant> contestants_of(PacketSteering placement, Cores cores) {
  std::vector<LockContestant> all;
  // Packets of native XDP do not get past the switch.
  for (const ResponderChoice& one : responders(placement)) {
    if (std::string(one.name) != "xdp-native")
      all.push_back({.home = one, .members = "xdp-skb", .cpu = CpuTime(cores)});
  }
  all.push_back({.home = all.back().home, .members = "block", .cpu = CpuTime(cores)});
  return all;
}

void add_rows(const std::vector<LockContestant>& contestants, Mode mode, PacketSteering placement,
              const std::vector<unsigned>& numbers, std::vector<Row>& rows) {
  for (unsigned contenders : numbers) {
    const LockContestant* best = nullptr;
    for (const LockContestant& one : contestants) {
      if (one.home.is_host &&
          (best == nullptr || median(one.figures.at(contenders).medians_us) <
                                  median(best->figures.at(contenders).medians_us)))
        best = &one;
    }
    for (const LockContestant& one : contestants) {
      const LockFigures& figures = one.figures.at(contenders);
      const Ratio ratio = ratio_of(figures.medians_us, best->figures.at(contenders).medians_us);
      Row row = atomic_row(one.home.name, mode, placement, "lock+unlock", contenders);
      row["rate_per_s"] = std::llround(median(figures.rates));
      row["median_us"] = round3(median(figures.medians_us));
      row["p99_us"] = round3(quantile(figures.cycles_us, 0.99));
      row["members"] = one.members;
      row["handed_share"] = round3(median(figures.handed));
      row["best_host"] = best->home.name;
      put_ratio(row, "ratio_to_best_host", ratio);
      one.cpu.write_to(row);
      row["repetitions"] = figures.cycles_us.size();
      rows.push_back(std::move(row));
    }
  }
}

void contend(LockRing& ring, LockContestant& one, const std::vector<unsigned>& numbers,
             const Limit& limit) {
  ring.open_lock(one.home);
  one.cpu.begin();
  for (unsigned contenders : numbers) {
    LockRing::Times times = ring.contend(contenders, limit);
    LockFigures& figures = one.figures[contenders];
    figures.medians_us.push_back(median(times.cycles_us));
    figures.rates.push_back(times.rate_per_s);
    figures.handed.push_back(times.handed_share);
    figures.cycles_us.insert(figures.cycles_us.end(), times.cycles_us.begin(),
                             times.cycles_us.end());
  }
  one.cpu.end();
  ring.close_lock();
}

void run_lock(SuiteRun& session, std::vector<Row>& rows) {
  const Cores cores = take_cores(session);
  const bool quick = session.options.quick;
  const std::vector<unsigned> numbers =
      quick ? std::vector<unsigned>{1, 4} : std::vector<unsigned>{1, 2, 3, 4, 6, most_contenders};
  const unsigned rounds = quick ? 2 : 5;
  const Limit limit{quick ? 1000u : 4000u, (quick ? 60 : 150) * tools::ns_per_ms};
  LockRing ring(numbers.back(), cores);
  const IdleSpinner spinner(cores.home);
  unsigned part = 0;
  for (Mode mode : {Mode::apart, Mode::shared}) {
    std::optional<CountingProcess> counter;
    if (mode == Mode::shared) counter.emplace(cores.home, cores.client);
    for (PacketSteering placement : placements) {
      ring.place(placement);
      std::vector<LockContestant> contestants = contestants_of(placement, cores);
      const char* members = "";
      for (unsigned round = 0; round < rounds; ++round) {
        for (std::size_t c = 0; c < contestants.size(); ++c) {
          // Contestants go forward and back again, so that those with the same kind of members stay
          // together: opening nodes takes long.
          LockContestant& one = contestants[round % 2 == 0 ? c : contestants.size() - 1 - c];
          session.options.progress(
              (part + static_cast<double>(round * contestants.size() + c) /
                          static_cast<double>(rounds * contestants.size())) /
                  4,
              fmt::format("{}, {}, {}", mode_name(mode), placement_name(placement), one.home.name));
          if (std::string(members) != one.members) ring.open_members(members = one.members);
          contend(ring, one, numbers, limit);
        }
      }
      ++part;
      add_rows(contestants, mode, placement, numbers, rows);
    }
  }
}

constexpr auto lock_columns =
    columns_of(column::home_core, column::receive, Column{"contenders", "contenders", Unit::count},
               column::responder, Column{"members", "members'", Unit::text}, column::median,
               column::p99, column::rate, column::to_host, column::to_host_q25, column::to_host_q75,
               column::process, column::softirq);

}  // namespace

const Suite lock_suite{
    "lock",   "a queue lock: one to eight nodes that contend for it (paper 002, Fig. 5 and 6)",
    run_lock, lock_columns,
    false,    why_no_atomics};

}  // namespace haul::bench
