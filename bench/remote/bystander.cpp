// bystander: how far a process counts at the home of a lock while another node acquires and
// releases it at a given rate (paper 002, Fig. 7).
#include <fmt/format.h>

#include <functional>

#include "base/machine/clock.hpp"
#include "bench/remote/columns.hpp"
#include "bench/remote/disturbed.hpp"
#include "bench/remote/hosts/counter.hpp"
#include "bench/remote/hosts/strange_frames.hpp"

namespace haul::bench {
namespace {

struct BystanderPlan {
  SuiteRun& session;
  const Pair& hosts;
  const CountingProcess& counter;
  Cores cores;
  Mode mode;
  PacketSteering placement;
  DisturbancePlan disturbance;
};

// Iterations a microsecond while `work` runs.
double counted_per_us(const CountingProcess& counter, const std::function<void()>& work) {
  const std::uint64_t count = counter.count(), begin = now_ns();
  work();
  return static_cast<double>(counter.count() - count) * 1e3 / static_cast<double>(now_ns() - begin);
}

// The last contestant is no responder: it stands for frames that nobody wants.
bool is_frames(const DisturbingContestant& one) {
  return one.haul.name == nullptr;
}

void measure_frames(const BystanderPlan& plan, DisturbingContestant& one) {
  StrangeFrames frames(plan.hosts);
  for (unsigned rate : plan.disturbance.rates) {
    one.figures[rate].take_turns(
        rate,
        [&](double per_s) {
          return counted_per_us(plan.counter,
                                [&] { frames.send(per_s, plan.disturbance.span_ns); });
        },
        [&] { return frames.sent(); });
  }
}

void measure(const BystanderPlan& plan, DisturbingContestant& one) {
  if (is_frames(one)) return measure_frames(plan, one);
  // A core other than the home's; with two cores that is the client's.
  const int server_cpu = plan.mode == Mode::shared ? plan.cores.home : plan.cores.client;
  PacedLock lock(plan.hosts, one.haul, server_cpu, plan.cores.client);
  disturb(one, lock, plan.disturbance.rates, [&](double per_s) {
    return counted_per_us(
        plan.counter, [&] { lock.use(per_s, plan.disturbance.span_ns, PacedLock::Pause::spin); });
  });
}

void add_rows(const BystanderPlan& plan, const std::vector<DisturbingContestant>& contestants,
              std::vector<Row>& rows) {
  for (unsigned rate : plan.disturbance.rates) {
    // Where frames are dropped nobody serves. A responder that polls takes its share of the core
    // even unasked.
    const double alone_per_us = median(contestants.back().figures.at(rate).idle);
    for (const DisturbingContestant& one : contestants) {
      const Disturbance& figures = one.figures.at(rate);
      const double ratio = median(figures.ratios), per_s = median(figures.rates);
      Row row = atomic_row(one.responder, plan.mode, plan.placement,
                           is_frames(one) ? "frames" : "lock, unlock", 1);
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

void run_bystander(SuiteRun& session, std::vector<Row>& rows) {
  const Cores cores = take_cores(session);
  const bool quick = session.options.quick;
  Pair hosts;
  const IdleSpinner spinner(cores.home);
  const CountingProcess counter(cores.home, cores.client);
  unsigned part = 0;
  for (Mode mode : {Mode::shared, Mode::apart}) {
    for (PacketSteering placement : placements) {
      hosts.place(placement, cores.client, mode == Mode::shared ? cores.home : cores.client);
      const BystanderPlan plan{
          session, hosts, counter, cores, mode, placement, {quick, {1'000, 10'000, 30'000}}};
      std::vector<DisturbingContestant> contestants;
      for (const ResponderChoice& one : responders(placement)) {
        // On the client's core a spinning responder would take turns with the client, which spins
        // too.
        const bool spins = one.is_host && std::string(one.name) != "block";
        if (mode == Mode::apart && spins) continue;
        contestants.push_back({.responder = one.name, .haul = one, .cpu = CpuTime(cores)});
      }
      contestants.push_back({.responder = "nobody (frames dropped)", .cpu = CpuTime(cores)});
      take_rounds(plan.disturbance.rounds, contestants,
                  [&](DisturbingContestant& one, double share) {
                    session.options.progress((part + share) / 4,
                                             fmt::format("{}, {}, {}", mode_name(mode),
                                                         placement_name(placement), one.responder));
                    measure(plan, one);
                  });
      ++part;
      add_rows(plan, contestants, rows);
    }
  }
}

constexpr auto bystander_columns = columns_of(
    column::home_core, column::receive, column::responder, column::rate, column::bystander,
    column::bystander_q25, column::bystander_q75, Column{"alone_ratio", "of alone", Unit::ratio},
    Column{"stolen_us", "each takes, us", Unit::ratio}, column::median, column::p99,
    column::process, column::softirq);

}  // namespace

const Suite bystander_suite{
    "bystander",   "what a process counts at the home of a lock in use (paper 002, Fig. 7)",
    run_bystander, bystander_columns,
    false,         why_no_atomics};

}  // namespace haul::bench
