// bystander-bandwidth: how fast a stream is sent from the home of a lock to a third node while
// another node acquires and releases the lock at a given rate (paper 002, Fig. 8).
#include <fmt/format.h>

#include <map>

#include "base/clock.hpp"
#include "bench/kit/disturbance.hpp"
#include "bench/remote/hosts/cpu_time.hpp"
#include "bench/remote/hosts/stream.hpp"
#include "bench/remote/lock_pace.hpp"
#include "bench/remote/suites_atomic.hpp"

namespace haul::bench {
namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr char home_cable[] = "haul1", third_cable[] = "haul0", third_address[] = "10.91.0.2";

struct BandwidthContestant {
  ResponderChoice responder;
  std::map<unsigned, Disturbance> figures = {};  // by rate
  Samples lost = {};
  CpuTime cpu;
};

struct BandwidthPlan {
  const Pair& hosts;
  const Namespace& third;
  Cores cores;
  Protocol protocol;
  PacketSteering placement;
  std::vector<unsigned> rates;
  std::uint64_t span_ns;
};

// The third node is on the client's core, of which the lock's user leaves it what it can: it sleeps
// between operations.
void measure(const BandwidthPlan& plan, BandwidthContestant& one) {
  PacedLock lock(plan.hosts, one.responder, plan.cores.home, plan.cores.client);
  Stream stream({plan.hosts.home, plan.cores.home}, {plan.third, plan.cores.client}, third_address,
                plan.protocol, plan.cores.client);
  const auto gbps = [&](double rate) {
    const std::uint64_t bytes = stream.sent_bytes(), begin = now_ns();
    lock.use(rate, plan.span_ns, PacedLock::Pause::sleep);
    return static_cast<double>(stream.sent_bytes() - bytes) / static_cast<double>(now_ns() - begin);
  };
  gbps(0);  // until the stream has found its speed
  one.cpu.begin();
  for (unsigned rate : plan.rates) {
    Disturbance& figures = one.figures[rate];
    figures.take_turns(rate, gbps, [&] { return lock.operations(); });
    lock.take_times_us(&figures.times_us);
  }
  one.cpu.end();
  one.lost.push_back(stream.finish());
}

void add_rows(const BandwidthPlan& plan, const std::vector<BandwidthContestant>& contestants,
              std::vector<Row>& rows) {
  for (unsigned rate : plan.rates) {
    for (const BandwidthContestant& one : contestants) {
      const Disturbance& figures = one.figures.at(rate);
      Row row = atomic_row(one.responder.name, Mode::shared, plan.placement, "lock, unlock", 1);
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

}  // namespace

void run_bystander_bandwidth(SuiteRun& session, std::vector<Row>& rows) {
  const Cores cores = take_cores(session);
  const bool quick = session.options.quick;
  const unsigned rounds = quick ? 1 : 3;
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
      const BandwidthPlan plan{
          hosts,
          third,
          cores,
          protocol,
          placement,
          quick ? std::vector<unsigned>{10'000} : std::vector<unsigned>{3'000, 10'000, 30'000},
          (quick ? 20 : 50) * ms};
      std::vector<BandwidthContestant> contestants;
      for (const ResponderChoice& one : responders(placement))
        contestants.push_back({.responder = one, .cpu = CpuTime(cores)});
      take_rounds(rounds, contestants, [&](BandwidthContestant& one, double share) {
        session.options.progress((part + share) / 4,
                                 fmt::format("{}, {}, {}", protocol_name(protocol),
                                             placement_name(placement), one.responder.name));
        measure(plan, one);
      });
      ++part;
      add_rows(plan, contestants, rows);
    }
  }
}

}  // namespace haul::bench
