// bystander-bandwidth: how fast a stream is sent from the home of a lock to a third node while
// another node acquires and releases the lock at a given rate (paper 002, Fig. 8). Spans with and
// without operations take turns.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/clock.hpp"
#include "bench/cpu_time.hpp"
#include "bench/lock_pace.hpp"
#include "bench/stream.hpp"
#include "bench/suites_atomic.hpp"

namespace haul::bench {
namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr unsigned pairs = 6;  // of spans, a round
constexpr char home_cable[] = "haul1", third_cable[] = "haul0", third_address[] = "10.91.0.2";

struct Figures {
  Samples ratios, rates, idle_gbps, loaded_gbps, times_us;
};

struct Contestant {
  Responder responder;
  std::map<unsigned, Figures> figures = {};
  Samples lost = {};
  CpuTime cpu;
};

struct Plan {
  const Pair& hosts;
  const Namespace& third;
  Cores cores;
  Protocol protocol;
  Placement placement;
  std::vector<unsigned> rates;
  std::uint64_t span_ns;
};

// The third node is on the client's core, of which the lock's user leaves it what it can: it sleeps
// between operations.
void measure(const Plan& plan, Contestant& one) {
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
    Figures& figures = one.figures[rate];
    for (unsigned pair = 0; pair < pairs; ++pair) {
      const double idle = gbps(0);
      const std::uint64_t before = lock.operations(), begin = now_ns();
      const double loaded = gbps(rate);
      figures.rates.push_back(static_cast<double>(lock.operations() - before) * 1e9 /
                              static_cast<double>(now_ns() - begin));
      figures.idle_gbps.push_back(idle);
      figures.loaded_gbps.push_back(loaded);
      if (idle > 0) figures.ratios.push_back(loaded / idle);
    }
    const Samples times_us = lock.take_times_us();
    figures.times_us.insert(figures.times_us.end(), times_us.begin(), times_us.end());
  }
  one.cpu.end();
  one.lost.push_back(stream.finish());
}

void add_rows(const Plan& plan, const std::vector<Contestant>& contestants,
              std::vector<Row>& rows) {
  for (unsigned rate : plan.rates) {
    for (const Contestant& one : contestants) {
      const Figures& figures = one.figures.at(rate);
      Row row = atomic_row(one.responder.name, Mode::shared, plan.placement, "lock, unlock", 1);
      row["protocol"] = protocol_name(plan.protocol);
      row["asked_per_s"] = rate;
      row["rate_per_s"] = std::llround(median(figures.rates));
      row["median_us"] = round3(median(figures.times_us));
      row["p99_us"] = round3(quantile(figures.times_us, 0.99));
      row["gbps"] = round3(median(figures.loaded_gbps));
      row["undisturbed_gbps"] = round3(median(figures.idle_gbps));
      row["bystander_ratio"] = round3(median(figures.ratios));
      row["bystander_ratio_q25"] = round3(quantile(figures.ratios, 0.25));
      row["bystander_ratio_q75"] = round3(quantile(figures.ratios, 0.75));
      row["lost_share"] = round3(median(one.lost));
      one.cpu.write_to(row);
      row["repetitions"] = figures.ratios.size();
      rows.push_back(std::move(row));
    }
  }
}

}  // namespace

void run_bystander_bandwidth(Session& session, std::vector<Row>& rows) {
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
    for (Placement placement : placements) {
      hosts.place(placement, cores.client, cores.home);
      steer(hosts.home, home_cable, placement, cores.home);
      steer(third, third_cable, placement, cores.client);
      const Plan plan{
          hosts,
          third,
          cores,
          protocol,
          placement,
          quick ? std::vector<unsigned>{10'000} : std::vector<unsigned>{3'000, 10'000, 30'000},
          (quick ? 20 : 50) * ms};
      std::vector<Contestant> contestants;
      for (const Responder& one : responders(placement))
        contestants.push_back({.responder = one, .cpu = CpuTime(cores)});
      const auto steps = static_cast<double>(rounds * contestants.size());
      for (unsigned round = 0; round < rounds; ++round) {
        for (std::size_t c = 0; c < contestants.size(); ++c) {
          Contestant& one = contestants[(c + round) % contestants.size()];
          session.options.progress(
              (part + static_cast<double>(round * contestants.size() + c) / steps) / 4,
              fmt::format("{}, {}, {}", protocol_name(protocol), placement_name(placement),
                          one.responder.name));
          measure(plan, one);
        }
      }
      ++part;
      add_rows(plan, contestants, rows);
    }
  }
}

}  // namespace haul::bench
