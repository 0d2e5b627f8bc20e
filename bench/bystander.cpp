// bystander: how far a process counts at the home of a lock while another node acquires and
// releases it at a given rate (paper 002, Fig. 7). Spans with and without operations take turns;
// they are long beside a scheduler's slice (4 ms), which operations may fall in step with.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>

#include "base/clock.hpp"
#include "bench/counter.hpp"
#include "bench/cpu_time.hpp"
#include "bench/lock_pace.hpp"
#include "bench/strange_frames.hpp"
#include "bench/suites_atomic.hpp"

namespace haul::bench {
namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr unsigned pairs = 6;  // of spans, a round

// What one responder's operations at one rate cost the process that counts.
struct Figures {
  Samples ratios, rates, idle_per_us, loaded_per_us, times_us;
};

struct Contestant {
  std::string responder;
  const Responder* haul = nullptr;  // none: frames that nobody wants
  std::map<unsigned, Figures> figures = {};
  CpuTime cpu;
};

struct Plan {
  Session& session;
  const Pair& hosts;
  const CountingProcess& counter;
  Cores cores;
  Mode mode;
  Placement placement;
  std::vector<unsigned> rates;
  std::uint64_t span_ns;
};

// Iterations a microsecond while `work` runs.
double counted_per_us(const CountingProcess& counter, const std::function<void()>& work) {
  const std::uint64_t count = counter.count(), begin = now_ns();
  work();
  return static_cast<double>(counter.count() - count) * 1e3 / static_cast<double>(now_ns() - begin);
}

// use(rate, ns); operations(): so far.
template <class Use, class Operations>
void take_turns(const Plan& plan, Figures& figures, unsigned rate, const Use& use,
                const Operations& operations) {
  for (unsigned pair = 0; pair < pairs; ++pair) {
    const double idle = counted_per_us(plan.counter, [&] { use(0, plan.span_ns); });
    const std::uint64_t before = operations(), begin = now_ns();
    const double loaded = counted_per_us(plan.counter, [&] { use(rate, plan.span_ns); });
    figures.rates.push_back(static_cast<double>(operations() - before) * 1e9 /
                            static_cast<double>(now_ns() - begin));
    if (idle <= 0) continue;  // somebody else had the core all the time
    figures.ratios.push_back(loaded / idle);
    figures.idle_per_us.push_back(idle);
    figures.loaded_per_us.push_back(loaded);
  }
}

void measure(const Plan& plan, Contestant& one) {
  // A core apart from the home's: of two, the client's.
  const int server_cpu = plan.mode == Mode::shared ? plan.cores.home : plan.cores.client;
  if (one.haul == nullptr) {
    StrangeFrames frames(plan.hosts);
    for (unsigned rate : plan.rates) {
      take_turns(
          plan, one.figures[rate], rate,
          [&](double per_s, std::uint64_t ns) { frames.send(per_s, ns); },
          [&] { return frames.sent(); });
    }
    return;
  }
  PacedLock lock(plan.hosts, *one.haul, server_cpu, plan.cores.client);
  one.cpu.begin();
  for (unsigned rate : plan.rates) {
    Figures& figures = one.figures[rate];
    take_turns(
        plan, figures, rate,
        [&](double per_s, std::uint64_t ns) { lock.use(per_s, ns, PacedLock::Pause::spin); },
        [&] { return lock.operations(); });
    const Samples times_us = lock.take_times_us();
    figures.times_us.insert(figures.times_us.end(), times_us.begin(), times_us.end());
  }
  one.cpu.end();
}

void add_rows(const Plan& plan, const std::vector<Contestant>& contestants,
              std::vector<Row>& rows) {
  for (unsigned rate : plan.rates) {
    // Where frames are dropped nobody serves: a responder that polls takes its share unasked.
    const double alone_per_us = median(contestants.back().figures.at(rate).idle_per_us);
    for (const Contestant& one : contestants) {
      const Figures& figures = one.figures.at(rate);
      const double ratio = median(figures.ratios), per_s = median(figures.rates);
      Row row = atomic_row(one.responder, plan.mode, plan.placement,
                           one.haul != nullptr ? "lock, unlock" : "frames", 1);
      row["asked_per_s"] = rate;
      row["rate_per_s"] = std::llround(per_s);
      if (one.haul != nullptr) {
        row["median_us"] = round3(median(figures.times_us));
        row["p99_us"] = round3(quantile(figures.times_us, 0.99));
      }
      row["bystander_ratio"] = round3(ratio);
      row["bystander_ratio_q25"] = round3(quantile(figures.ratios, 0.25));
      row["bystander_ratio_q75"] = round3(quantile(figures.ratios, 0.75));
      // Of the home's core, by each operation.
      row["stolen_us"] = round3((1 - ratio) * 1e6 / per_s);
      row["alone_ratio"] = round3(median(figures.loaded_per_us) / alone_per_us);
      row["iterations_per_us"] = round1(median(figures.loaded_per_us));
      one.cpu.write_to(row);
      row["repetitions"] = figures.ratios.size();
      rows.push_back(std::move(row));
    }
  }
}

}  // namespace

void run_bystander(Session& session, std::vector<Row>& rows) {
  const Cores cores = take_cores(session);
  const bool quick = session.options.quick;
  const unsigned rounds = quick ? 1 : 3;
  Pair hosts;
  const IdleSpinner spinner(cores.home);
  const CountingProcess counter(cores.home, cores.client);
  unsigned part = 0;
  for (Mode mode : {Mode::shared, Mode::apart}) {
    for (Placement placement : placements) {
      hosts.place(placement, cores.client, mode == Mode::shared ? cores.home : cores.client);
      const Plan plan{
          session,
          hosts,
          counter,
          cores,
          mode,
          placement,
          quick ? std::vector<unsigned>{10'000} : std::vector<unsigned>{1'000, 10'000, 30'000},
          (quick ? 20 : 50) * ms};
      const std::vector<Responder> all = responders(placement);
      std::vector<Contestant> contestants;
      for (const Responder& one : all) {
        // On the client's core they would take turns with the client, which spins.
        const bool spins = one.is_host && std::string(one.name) != "block";
        if (mode == Mode::apart && spins) continue;
        contestants.push_back({.responder = one.name, .haul = &one, .cpu = CpuTime(cores)});
      }
      contestants.push_back({.responder = "nobody (frames dropped)", .cpu = CpuTime(cores)});
      const auto steps = static_cast<double>(rounds * contestants.size());
      for (unsigned round = 0; round < rounds; ++round) {
        for (std::size_t c = 0; c < contestants.size(); ++c) {
          Contestant& one = contestants[(c + round) % contestants.size()];
          session.options.progress(
              (part + static_cast<double>(round * contestants.size() + c) / steps) / 4,
              fmt::format("{}, {}, {}", mode_name(mode), placement_name(placement), one.responder));
          measure(plan, one);
        }
      }
      ++part;
      add_rows(plan, contestants, rows);
    }
  }
}

}  // namespace haul::bench
