// Rounds of launches, and what their medians say.
#include "bench/messages/mpi_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "bench/kit/libraries.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

constexpr unsigned rounds_full = 5, rounds_quick = 3, launch_limit_s = 300;
constexpr unsigned budget_us = 20000, budget_quick_us = 5000;  // for each figure in a launch

// The figures of one size, an entry for each round.
struct MessageSeries {
  Samples us, gbps, loop_us, least_us;
};
using BySize = std::map<std::size_t, MessageSeries>;

struct Combination {
  std::string test, buffers;
  unsigned ranks;
  std::vector<std::size_t> sizes;
};

bool is_pair(const std::string& test) {
  return test != "exchange" && test != "alltoall" && test != "bcast" && test != "allreduce";
}

// A window holds many messages at once, so larger sizes are left out.
std::size_t most_bytes(const std::string& test) {
  using tools::kib;
  using tools::mib;
  return test == "rate" ? 64 * kib : test == "bandwidth" ? 16 * mib : 256 * mib;
}

// Words are summed.
std::size_t unit_bytes(const std::string& test) {
  return test == "allreduce" ? 8 : 1;
}

std::vector<Combination> combinations(const SuiteRun& session, const MessagePlan& plan) {
  std::vector<Combination> all;
  for (const std::string& test : plan.tests) {
    std::vector<std::size_t> sizes = plan.sizes;
    std::erase_if(sizes, [&](std::size_t bytes) {
      return bytes > most_bytes(test) || bytes % unit_bytes(test) != 0;
    });
    if (sizes.size() < plan.sizes.size() && !session.options.sizes.empty())
      session.options.note(fmt::format("{} is measured with messages up to {} alone{}", test,
                                       tools::show_bytes(most_bytes(test)),
                                       unit_bytes(test) == 1 ? "" : ", of whole words of 8 bytes"));
    if (sizes.empty()) continue;
    for (unsigned ranks : plan.ranks) {
      if (is_pair(test) && ranks != 2) continue;
      for (const std::string& buffers : plan.buffers) all.push_back({test, buffers, ranks, sizes});
    }
  }
  return all;
}

template <class List>
std::string comma_separated(const List& list) {
  return fmt::format("{}", fmt::join(list, ","));
}

// The last-level cache that the ranks share. If it is unknown, a guess: bench.c cannot use 0.
std::size_t cache_bytes(const SuiteRun& session) {
  const Topology& topology = session.stage.topology();
  constexpr std::size_t at_least = std::size_t{1} << 20;
  return std::max({topology.l3_bytes, topology.l2_bytes, at_least});
}

// "row TEST KIND RANKS BYTES US GBPS LOOP_US LEAST_US"
void add_output(const CommandOutcome& outcome, const Runner& runner, std::size_t wanted,
                BySize& series) {
  take_figures(outcome, runner, "row", wanted, [&](std::istringstream& fields) {
    std::string test, kind;
    unsigned ranks = 0;
    std::size_t bytes = 0;
    double us = 0, gbps = 0, loop_us = 0, least_us = 0;
    if (!(fields >> test >> kind >> ranks >> bytes >> us >> gbps >> loop_us >> least_us))
      return false;
    MessageSeries& one = series[bytes];
    one.us.push_back(us);
    one.gbps.push_back(gbps);
    one.loop_us.push_back(loop_us);
    one.least_us.push_back(least_us);
    return true;
  });
}

// The MPI whose own shared memory is fastest for this size; null if no MPI runs on its own.
const Runner* best_native(const std::vector<Runner>& runners, const std::vector<BySize>& series,
                          std::size_t bytes) {
  const Runner* best = nullptr;
  double best_us = 0;
  for (std::size_t i = 0; i < runners.size(); ++i) {
    if (runners[i].transport != Transport::native) continue;
    const double us = median(series[i].at(bytes).us);
    if (best != nullptr && us >= best_us) continue;
    best = &runners[i];
    best_us = us;
  }
  return best;
}

Row row_of(const SuiteRun& session, const Combination& what, const std::vector<Runner>& runners,
           const std::vector<BySize>& series, std::size_t index, std::size_t bytes) {
  const Runner& runner = runners[index];
  const MessageSeries& own = series[index].at(bytes);
  auto of = [&](const Runner* other) -> const MessageSeries& {
    return series[static_cast<std::size_t>(other - runners.data())].at(bytes);
  };
  Row row = {{"mpi", runner.mpi->name()},
             {"mpi_title", runner.mpi->title()},
             {"transport", transport_name(runner.transport)}};
  if (!runner.scheme.empty()) {
    row["scheme"] = runner.scheme;
    row["mover"] = runner.mover;
  }
  row["test"] = what.test;
  row["buffers"] = what.buffers;
  row["ranks"] = what.ranks;
  row["oversubscribed"] = what.ranks > session.stage.topology().allowed_count;
  row["size_bytes"] = bytes;
  row["median_us"] = round3(median(own.us));
  row["q25_us"] = round3(quantile(own.us, 0.25));
  row["q75_us"] = round3(quantile(own.us, 0.75));
  row["least_us"] = round3(quantile(own.least_us, 0));
  row["gbps"] = round3(median(own.gbps));
  if (what.buffers == "fresh") row["loop_us"] = round3(median(own.loop_us));
  if (what.test == "rate") row["messages_per_s"] = round1(1e6 / median(own.us));
  row["rounds"] = own.us.size();
  const Runner* native = native_of(runners, runner);
  if (native != nullptr && native != &runner) {
    put_ratio(row, "ratio_to_native", ratio_of(own.us, of(native).us));
    if (what.buffers == "fresh")
      put_ratio(row, "ratio_loop_to_native", ratio_of(own.loop_us, of(native).loop_us));
  }
  const Runner* first = first_scheme_of(runners, runner);
  if (first != nullptr && first != &runner)
    put_ratio(row, "ratio_to_first", ratio_of(own.us, of(first).us));
  const Runner* best = best_native(runners, series, bytes);
  if (best != nullptr && best != &runner) {
    row["best_native"] = best->mpi->name();
    put_ratio(row, "ratio_to_best", ratio_of(own.us, of(best).us));
  }
  return row;
}

}  // namespace

const std::vector<std::string>& message_tests() {
  static const std::vector<std::string> names = {"pingpong", "pingping",  "exchange", "alltoall",
                                                 "bcast",    "allreduce", "rate",     "bandwidth"};
  return names;
}

const std::vector<std::string>& message_buffers() {
  static const std::vector<std::string> names = {"reused", "rewritten", "fresh", "off-cache",
                                                 "alloc-mem"};
  return names;
}

std::vector<std::string> message_probe(const SuiteRun& session) {
  return {"pingpong", "reused", "1,4096", cpu_list(session), "1", "100", "early"};
}

std::vector<std::string> build_messages(const SuiteRun& session, const std::vector<MpiPeer>& mpis,
                                        const tools::TemporaryDirectory& directory) {
  std::vector<std::string> programs;
  for (const MpiPeer& mpi : mpis) {
    session.options.progress(0, fmt::format("compiling with {}", mpi.title()));
    programs.push_back(mpi.build(directory.path(), "messages",
                                 {"bench.c", "buffers.c", "common.c", "content.c", "exchange.c"}));
  }
  return programs;
}

void measure_messages(SuiteRun& session, const std::vector<Runner>& runners,
                      const MessagePlan& plan, std::vector<Row>& rows) {
  const unsigned rounds = session.options.quick ? rounds_quick : rounds_full;
  const std::vector<Combination> all = combinations(session, plan);
  const double launches = static_cast<double>(all.size() * rounds * runners.size());
  double done = 0;
  for (const Combination& what : all) {
    const std::vector<std::string> arguments = {
        what.test,
        what.buffers,
        comma_separated(what.sizes),
        cpu_list(session),
        std::to_string(cache_bytes(session)),
        std::to_string(session.options.quick ? budget_quick_us : budget_us)};
    std::vector<BySize> series(runners.size());
    CoreDistances placement(session);
    for (unsigned round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < runners.size(); ++i) {
        session.options.progress(
            done++ / launches,
            fmt::format("{} {}, {}", what.test, what.buffers, describe(runners[i])));
        const CommandOutcome outcome =
            run_one(session, placement, runners[i], what.ranks, arguments, launch_limit_s);
        add_output(outcome, runners[i], what.sizes.size(), series[i]);
      }
    }
    for (std::size_t bytes : what.sizes) {
      for (std::size_t i = 0; i < runners.size(); ++i) {
        Row row = row_of(session, what, runners, series, i, bytes);
        placement.describe(row);
        rows.push_back(std::move(row));
      }
    }
  }
}

std::string mapped_memory_library() {
  std::string path = plugin_file("libhaul-mpi.so");
  if (!std::filesystem::exists(path))
    throw tools::CommandFailure(path + " is missing; build or install haul with an MPI's provider");
  return path;
}

}  // namespace haul::bench
