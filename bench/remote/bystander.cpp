// bystander: how far a process counts at the home of a lock while another node acquires and
// releases it at a given rate (paper 002, Fig. 7).
#include <fmt/format.h>

#include <functional>
#include <map>

#include "base/clock.hpp"
#include "bench/kit/disturbance.hpp"
#include "bench/remote/hosts/counter.hpp"
#include "bench/remote/hosts/cpu_time.hpp"
#include "bench/remote/hosts/strange_frames.hpp"
#include "bench/remote/lock_pace.hpp"
#include "bench/remote/suites_atomic.hpp"

namespace haul::bench {
namespace {

constexpr std::uint64_t ms = 1'000'000;

struct BystanderContestant {
  std::string responder;
  const ResponderChoice* haul = nullptr;         // none: frames that nobody wants
  std::map<unsigned, Disturbance> figures = {};  // by rate
  CpuTime cpu;
};

struct BystanderPlan {
  SuiteRun& session;
  const Pair& hosts;
  const CountingProcess& counter;
  Cores cores;
  Mode mode;
  PacketSteering placement;
  std::vector<unsigned> rates;
  std::uint64_t span_ns;
};

// Iterations a microsecond while `work` runs.
double counted_per_us(const CountingProcess& counter, const std::function<void()>& work) {
  const std::uint64_t count = counter.count(), begin = now_ns();
  work();
  return static_cast<double>(counter.count() - count) * 1e3 / static_cast<double>(now_ns() - begin);
}

void measure_frames(const BystanderPlan& plan, BystanderContestant& one) {
  StrangeFrames frames(plan.hosts);
  for (unsigned rate : plan.rates) {
    one.figures[rate].take_turns(
        rate,
        [&](double per_s) {
          return counted_per_us(plan.counter, [&] { frames.send(per_s, plan.span_ns); });
        },
        [&] { return frames.sent(); });
  }
}

void measure(const BystanderPlan& plan, BystanderContestant& one) {
  if (one.haul == nullptr) return measure_frames(plan, one);
  // A core apart from the home's: of two, the client's.
  const int server_cpu = plan.mode == Mode::shared ? plan.cores.home : plan.cores.client;
  PacedLock lock(plan.hosts, *one.haul, server_cpu, plan.cores.client);
  one.cpu.begin();
  for (unsigned rate : plan.rates) {
    Disturbance& figures = one.figures[rate];
    figures.take_turns(
        rate,
        [&](double per_s) {
          return counted_per_us(plan.counter,
                                [&] { lock.use(per_s, plan.span_ns, PacedLock::Pause::spin); });
        },
        [&] { return lock.operations(); });
    lock.take_times_us(&figures.times_us);
  }
  one.cpu.end();
}

void add_rows(const BystanderPlan& plan, const std::vector<BystanderContestant>& contestants,
              std::vector<Row>& rows) {
  for (unsigned rate : plan.rates) {
    // Where frames are dropped nobody serves: a responder that polls takes its share unasked.
    const double alone_per_us = median(contestants.back().figures.at(rate).idle);
    for (const BystanderContestant& one : contestants) {
      const Disturbance& figures = one.figures.at(rate);
      const double ratio = median(figures.ratios), per_s = median(figures.rates);
      Row row = atomic_row(one.responder, plan.mode, plan.placement,
                           one.haul != nullptr ? "lock, unlock" : "frames", 1);
      figures.write_to(row, rate);
      // Of the home's core, by each operation.
      row["stolen_us"] = round3((1 - ratio) * 1e6 / per_s);
      row["alone_ratio"] = round3(median(figures.loaded) / alone_per_us);
      row["iterations_per_us"] = round1(median(figures.loaded));
      one.cpu.write_to(row);
      rows.push_back(std::move(row));
    }
  }
}

}  // namespace

void run_bystander(SuiteRun& session, std::vector<Row>& rows) {
  const Cores cores = take_cores(session);
  const bool quick = session.options.quick;
  const unsigned rounds = quick ? 1 : 3;
  Pair hosts;
  const IdleSpinner spinner(cores.home);
  const CountingProcess counter(cores.home, cores.client);
  unsigned part = 0;
  for (Mode mode : {Mode::shared, Mode::apart}) {
    for (PacketSteering placement : placements) {
      hosts.place(placement, cores.client, mode == Mode::shared ? cores.home : cores.client);
      const BystanderPlan plan{
          session,
          hosts,
          counter,
          cores,
          mode,
          placement,
          quick ? std::vector<unsigned>{10'000} : std::vector<unsigned>{1'000, 10'000, 30'000},
          (quick ? 20 : 50) * ms};
      const std::vector<ResponderChoice> all = responders(placement);
      std::vector<BystanderContestant> contestants;
      for (const ResponderChoice& one : all) {
        // On the client's core they would take turns with the client, which spins.
        const bool spins = one.is_host && std::string(one.name) != "block";
        if (mode == Mode::apart && spins) continue;
        contestants.push_back({.responder = one.name, .haul = &one, .cpu = CpuTime(cores)});
      }
      contestants.push_back({.responder = "nobody (frames dropped)", .cpu = CpuTime(cores)});
      take_rounds(rounds, contestants, [&](BystanderContestant& one, double share) {
        session.options.progress(
            (part + share) / 4,
            fmt::format("{}, {}, {}", mode_name(mode), placement_name(placement), one.responder));
        measure(plan, one);
      });
      ++part;
      add_rows(plan, contestants, rows);
    }
  }
}

}  // namespace haul::bench
