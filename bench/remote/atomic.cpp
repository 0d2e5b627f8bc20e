// atomic: round trips of each operation by each responder (paper 002, Fig. 4), beside Redis and
// MPI; and what one client gets through in a second.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "bench/remote/columns.hpp"
#include "bench/remote/hosts/atomic_calls.hpp"
#include "bench/remote/hosts/atomic_stage.hpp"
#include "bench/remote/hosts/counter.hpp"
#include "bench/remote/hosts/cpu_time.hpp"
#include "bench/remote/hosts/peers_mpi_atomic.hpp"
#include "bench/remote/hosts/peers_redis.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

constexpr std::uint32_t client_spin_us = 1'000'000;  // the client has its core to itself
constexpr unsigned packets_at_once = 32;
constexpr std::uint64_t shared_every_ns = 100'000;
constexpr std::array<unsigned, 2> batches = {1, HAUL_ATOMIC_MAX_BATCH};

struct CallFigures {
  Samples times_us, medians_us, p99s_us, rates;  // of all calls; one a round
  void add(const Calls& calls) {
    times_us.insert(times_us.end(), calls.times_us.begin(), calls.times_us.end());
    medians_us.push_back(median(calls.times_us));
    rates.push_back(calls.rate_per_s);
  }
  double median_us() const { return median(medians_us); }
  double p99_us() const { return times_us.empty() ? median(p99s_us) : quantile(times_us, 0.99); }
};

// One way of asking: a responder, or a peer, and how the client hears.
struct AskingContestant {
  std::string responder, hearing;
  std::optional<ResponderChoice> haul;  // none: a peer
  bool is_host = true;                  // a process at home answers
  std::map<std::string, CallFigures> figures = {};
  CpuTime cpu;
};

struct Contest {
  SuiteRun& session;
  const Pair& hosts;
  Cores cores;
  Mode mode;
  PacketSteering placement;
  Limit limit;
  std::uint64_t every_ns;  // between two calls; 0: no pause
  unsigned rounds;
  std::vector<AskingContestant> contestants = {};
};

constexpr char redis_op[] = "INCR", mpi_op[] = "MPI_Fetch_and_op";

// What Fig. 4 asks of every responder; where cores are shared, the sum will do.
std::vector<Op> ops_of(Mode mode) {
  if (mode == Mode::shared) return {Op::add, Op::cas_hit};
  return {all_ops.begin(), all_ops.end()};
}

std::string throughput_name(unsigned batch) {
  return fmt::format("fetch&adds, {} a packet", batch);
}

void ask_haul(const Contest& contest, AskingContestant& one) {
  const Node home = contest.hosts.open_home(*one.haul, contest.cores.home);
  const Window window = make_window(home, 4096);
  const std::string word =
      one.hearing == "none" ? one.hearing : fmt::format("{}:{}", one.hearing, atomic_interface);
  const Node client = open_node(contest.hosts.client, word, -1, client_spin_us);
  Asker asker(client, window);
  asker.ask(Op::add, {contest.limit.count / 10, contest.limit.ns / 4});
  one.cpu.begin();
  for (Op op : ops_of(contest.mode))
    one.figures[op_name(op)].add(asker.ask(op, contest.limit, contest.every_ns));
  one.cpu.end();
  if (contest.mode == Mode::shared) return;
  for (unsigned batch : batches) {
    one.figures[throughput_name(batch)].rates.push_back(
        asker.adds_per_s(batch, packets_at_once, contest.limit.ns / 2));
  }
}

void ask_redis(const Contest& contest, AskingContestant& one) {
  Redis redis(contest.hosts, contest.cores.home);
  one.cpu = CpuTime(contest.cores, redis.server());
  one.cpu.begin();
  one.figures[redis_op].add(
      time_calls(contest.limit, contest.every_ns, [&] { redis.increment(); }));
  one.cpu.end();
}

std::vector<AskingContestant> contestants_of(const Contest& contest) {
  std::vector<AskingContestant> all;
  for (const ResponderChoice& responder : responders(contest.placement)) {
    // Host responders are heard in every way, and the best one counts.
    std::vector<std::string> hearings = {responder.hearing};
    if (responder.is_host) hearings.emplace_back("none");
    if (responder.is_host && contest.placement == PacketSteering::sender)
      hearings.emplace_back("none-native");
    for (const std::string& hearing : hearings) {
      all.push_back({.responder = responder.name,
                     .hearing = hearing,
                     .haul = responder,
                     .is_host = responder.is_host,
                     .cpu = CpuTime(contest.cores)});
    }
  }
  if (Redis::missing().empty())
    all.push_back(
        {.responder = "redis", .hearing = "TCP", .haul = {}, .cpu = CpuTime(contest.cores)});
  return all;
}

const AskingContestant* best(const Contest& contest, const std::string& op, bool hosts_only,
                             const std::string& responder) {
  const AskingContestant* found = nullptr;
  for (const AskingContestant& one : contest.contestants) {
    const auto figures = one.figures.find(op);
    if (figures == one.figures.end() || (hosts_only && !(one.is_host && one.haul)) ||
        (!responder.empty() && one.responder != responder))
      continue;
    const auto better = [&] {
      const CallFigures &mine = figures->second, &other = found->figures.at(op);
      if (mine.medians_us.empty()) return median(mine.rates) > median(other.rates);
      return mine.median_us() < other.median_us();
    };
    if (found == nullptr || better()) found = &one;
  }
  return found;
}

void add_row(const Contest& contest, const std::string& responder, const std::string& op,
             const std::string& compared_op, std::vector<Row>& rows) {
  const AskingContestant* one = best(contest, op, false, responder);
  if (one == nullptr) return;
  const CallFigures& figures = one->figures.at(op);
  Row row = atomic_row(responder, contest.mode, contest.placement, op, 1);
  row["rate_per_s"] = std::llround(median(figures.rates));
  if (!figures.medians_us.empty()) {
    row["median_us"] = round3(figures.median_us());
    row["p99_us"] = round3(figures.p99_us());
  }
  if (!figures.times_us.empty()) row["p999_us"] = round3(quantile(figures.times_us, 0.999));
  if (contest.every_ns > 0) row["every_us"] = contest.every_ns / 1000;
  row["hearing"] = one->hearing;
  if (const AskingContestant* host = best(contest, compared_op, true, ""); host != nullptr) {
    // Of times, or of rates where times are not taken.
    const CallFigures& other = host->figures.at(compared_op);
    const Ratio ratio = figures.medians_us.empty() ? ratio_of(figures.rates, other.rates)
                                                   : ratio_of(figures.medians_us, other.medians_us);
    row["best_host"] = host->responder;
    put_ratio(row, "ratio_to_best_host", ratio);
  }
  one->cpu.write_to(row);
  row["repetitions"] = figures.times_us.size();
  rows.push_back(std::move(row));
}

void add_rows(const Contest& contest, std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (Op op : ops_of(contest.mode)) names.emplace_back(op_name(op));
  for (unsigned batch : batches) names.push_back(throughput_name(batch));
  for (const std::string& op : names) {
    for (const ResponderChoice& responder : responders(contest.placement))
      add_row(contest, responder.name, op, op, rows);
  }
  add_row(contest, "redis", redis_op, op_name(Op::add), rows);
  add_row(contest, "Open MPI, tcp", mpi_op, op_name(Op::add), rows);
}

// Launches of its own; a figure a launch.
void ask_mpi(Contest& contest, const MpiAtomic& mpi) {
  AskingContestant& one = contest.contestants.emplace_back(AskingContestant{
      .responder = "Open MPI, tcp", .hearing = "TCP", .haul = {}, .cpu = CpuTime(contest.cores)});
  CallFigures& figures = one.figures[mpi_op];
  for (unsigned round = 0; round < contest.rounds; ++round) {
    const MpiAtomic::Times times = mpi.run(contest.limit);
    figures.medians_us.push_back(times.median_us);
    figures.p99s_us.push_back(times.p99_us);
    figures.rates.push_back(times.rate_per_s);
  }
}

std::unique_ptr<MpiAtomic> find_mpi(SuiteRun& session, const Pair& hosts, Cores cores) {
  try {
    return std::make_unique<MpiAtomic>(hosts, cores);
  } catch (const tools::CommandFailure& failure) {
    session.options.note(fmt::format("no Open MPI to compare with: {}", failure.what()));
    return nullptr;
  }
}

void run_contest(Contest& contest, double from, double share) {
  take_rounds(contest.rounds, contest.contestants, [&](AskingContestant& one, double done) {
    contest.session.options.progress(from + share * done,
                                     fmt::format("{}, {}, {}", mode_name(contest.mode),
                                                 placement_name(contest.placement), one.responder));
    one.haul ? ask_haul(contest, one) : ask_redis(contest, one);
  });
}

void run_atomic(SuiteRun& session, std::vector<Row>& rows) {
  const Cores cores = take_cores(session);
  Pair hosts;
  const IdleSpinner spinner(cores.home);
  const bool quick = session.options.quick;
  if (!Redis::missing().empty()) session.options.note(Redis::missing());
  const std::unique_ptr<MpiAtomic> mpi = find_mpi(session, hosts, cores);
  double from = 0;
  for (Mode mode : {Mode::apart, Mode::shared}) {
    std::optional<CountingProcess> counter;
    if (mode == Mode::shared) counter.emplace(cores.home, cores.client);
    for (PacketSteering placement : placements) {
      hosts.place(placement, cores.client, cores.home);
      Contest contest{.session = session,
                      .hosts = hosts,
                      .cores = cores,
                      .mode = mode,
                      .placement = placement,
                      .limit = {quick ? 500u : 2000u, (quick ? 60 : 200) * tools::ns_per_ms},
                      .every_ns = mode == Mode::shared ? shared_every_ns : 0,
                      .rounds = quick ? 2u : 5u};
      contest.contestants = contestants_of(contest);
      run_contest(contest, from, 0.22);
      from += 0.25;
      try {
        if (mpi && mode == Mode::apart) ask_mpi(contest, *mpi);
      } catch (const tools::CommandFailure& failure) {
        contest.contestants.pop_back();
        session.options.note(failure.what());
      }
      add_rows(contest, rows);
    }
  }
}

constexpr auto atomic_columns = columns_of(
    column::home_core, column::receive, Column{"op", "op", Unit::text}, column::responder,
    Column{"hearing", "heard by", Unit::text}, column::median, column::p99, column::rate,
    column::to_host, column::to_host_q25, column::to_host_q75, column::process, column::softirq);

}  // namespace

const Suite atomic_suite{
    "atomic",
    "remote atomics: each operation by each responder, Redis and MPI (paper 002, Fig. 4)",
    run_atomic,
    atomic_columns,
    false,
    why_no_atomics};

}  // namespace haul::bench
