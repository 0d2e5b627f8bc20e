// bystander-bandwidth: how fast a stream is sent from the home of a lock to a third node while
// another node acquires and releases the lock at a given rate (paper 002, Fig. 8).
#include <fmt/format.h>

#include "base/machine/clock.hpp"
#include "bench/remote/columns.hpp"
#include "bench/remote/disturbed.hpp"
#include "bench/remote/hosts/stream.hpp"

namespace haul::bench {
namespace {

constexpr char home_cable[] = "haul1", third_cable[] = "haul0", third_address[] = "10.91.0.2";

struct BandwidthPlan {
  const Pair& hosts;
  const Namespace& third;
  Cores cores;
  Protocol protocol;
  PacketSteering placement;
  DisturbancePlan disturbance;
};

// The third node runs on the client's core, and so gets what the user of the lock leaves: that user
// sleeps between operations.
void measure(const BandwidthPlan& plan, DisturbingContestant& one) {
  PacedLock lock(plan.hosts, one.haul, plan.cores.home, plan.cores.client);
  Stream stream({plan.hosts.home, plan.cores.home}, {plan.third, plan.cores.client}, third_address,
                plan.protocol, plan.cores.client);
  const auto gbps = [&](double rate) {
    const std::uint64_t bytes = stream.sent_bytes(), begin = now_ns();
    lock.use(rate, plan.disturbance.span_ns, PacedLock::Pause::sleep);
    return static_cast<double>(stream.sent_bytes() - bytes) / static_cast<double>(now_ns() - begin);
  };
  gbps(0);  // lets the stream find its speed
  disturb(one, lock, plan.disturbance.rates, gbps);
  one.lost.push_back(stream.finish());
}

void add_rows(const BandwidthPlan& plan, const std::vector<DisturbingContestant>& contestants,
              std::vector<Row>& rows) {
  for (unsigned rate : plan.disturbance.rates) {
    for (const DisturbingContestant& one : contestants) {
      const Disturbance& figures = one.figures.at(rate);
      Row row = atomic_row(one.responder, Mode::shared, plan.placement, "lock, unlock", 1);
      row["protocol"] = protocol_name(plan.protocol);
      figures.write_to(row, rate);
      row["gbps"] = round3(median(figures.loaded));
      row["undisturbed_gbps"] = round3(median(figures.idle));
      row["lost_share"] = round3(median(one.lost));
      one.cpu.write_to(row);
      rows.push_back(std::move(row));
    }
  }
}

void run_bystander_bandwidth(SuiteRun& session, std::vector<Row>& rows) {
  const Cores cores = take_cores(session);
  const bool quick = session.options.quick;
  Pair hosts;
  const Namespace third;
  join(hosts.home, home_cable, "10.91.0.1/24", third, third_cable,
       std::string(third_address) + "/24");
  const IdleSpinner spinner(cores.home);
  unsigned part = 0;
  for (Protocol protocol : {Protocol::tcp, Protocol::udp}) {
    for (PacketSteering placement : placements) {
      hosts.place(placement, cores.client, cores.home);
      steer(hosts.home, home_cable, placement, cores.home);
      steer(third, third_cable, placement, cores.client);
      const BandwidthPlan plan{hosts,    third,     cores,
                               protocol, placement, {quick, {3'000, 10'000, 30'000}}};
      std::vector<DisturbingContestant> contestants;
      for (const ResponderChoice& one : responders(placement))
        contestants.push_back({.responder = one.name, .haul = one, .cpu = CpuTime(cores)});
      take_rounds(plan.disturbance.rounds, contestants,
                  [&](DisturbingContestant& one, double share) {
                    session.options.progress((part + share) / 4,
                                             fmt::format("{}, {}, {}", protocol_name(protocol),
                                                         placement_name(placement), one.responder));
                    measure(plan, one);
                  });
      ++part;
      add_rows(plan, contestants, rows);
    }
  }
}

constexpr auto bystander_bandwidth_columns = columns_of(
    Column{"protocol", "stream", Unit::text}, column::receive, column::responder, column::rate,
    Column{"gbps", "bandwidth", Unit::gbps}, Column{"undisturbed_gbps", "undisturbed", Unit::gbps},
    column::bystander, column::bystander_q25, column::bystander_q75, column::median, column::p99,
    column::process, column::softirq);

}  // namespace

const Suite bystander_bandwidth_suite{
    "bystander-bandwidth",
    "a stream from the home of a lock in use to a third node (paper 002, Fig. 8)",
    run_bystander_bandwidth,
    bystander_bandwidth_columns,
    false,
    why_no_atomics};

}  // namespace haul::bench
