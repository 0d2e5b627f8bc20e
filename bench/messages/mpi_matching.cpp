// mpi-matching: what matching a message costs among many posted receives, and a receive among many
// unexpected messages, while the transports take turns.
#include <fmt/format.h>

#include <map>
#include <sstream>

#include "bench/messages/mpi_columns.hpp"
#include "bench/messages/mpi_race.hpp"
#include "tools/directory.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr unsigned crowd_rounds_full = 7, crowd_rounds_quick = 3, crowd_limit_s = 120;

struct CrowdSamples {
  Samples median_ns, least_ns;
};
using CrowdSeries = std::map<std::pair<std::string, unsigned>, CrowdSamples>;

std::string entry_list(const std::vector<unsigned>& entries) {
  return fmt::format("{}", fmt::join(entries, ","));
}

// "row TEST ENTRIES MEDIAN_NS LEAST_NS"
void add_crowds(const CommandOutcome& outcome, const Runner& runner, std::size_t expected,
                CrowdSeries& series) {
  std::istringstream lines(outcome.out);
  std::size_t found = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string row, test;
    unsigned entries = 0;
    double median_ns = 0, least_ns = 0;
    if (!(fields >> row >> test >> entries >> median_ns >> least_ns) || row != "row") continue;
    CrowdSamples& samples = series[{test, entries}];
    samples.median_ns.push_back(median_ns);
    samples.least_ns.push_back(least_ns);
    ++found;
  }
  if (found != expected)
    throw tools::CommandFailure(fmt::format("{} printed {} of {} figures: {}", describe(runner),
                                            found, expected, reason_of(outcome)));
}

void run_mpi_matching(SuiteRun& session, std::vector<Row>& rows) {
  const bool quick = session.options.quick;
  const std::vector<unsigned> entries =
      quick ? std::vector<unsigned>{1, 16, 1000} : std::vector<unsigned>{1, 16, 100, 1000, 10000};
  const std::vector<MpiPeer> mpis = choose_mpis(session);
  const tools::TemporaryDirectory directory;
  std::vector<std::string> programs;
  for (const MpiPeer& mpi : mpis) {
    session.options.progress(0, fmt::format("compiling with {}", mpi.title()));
    programs.push_back(mpi.build(directory.path(), "matching", {"matching.c", "common.c"}));
  }
  const std::vector<Runner> runners =
      choose_runners(session, mpis, programs, {"1,20", cpu_list(session), "1", "early"});
  const unsigned rounds = quick ? crowd_rounds_quick : crowd_rounds_full;
  const char* budget_us = quick ? "20000" : "100000";
  std::vector<CrowdSeries> series(runners.size());
  CoreDistances placement(session);
  for (unsigned round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < runners.size(); ++i) {
      const double done = static_cast<double>(round * runners.size() + i);
      session.options.progress(done / static_cast<double>(rounds * runners.size()),
                               describe(runners[i]));
      add_crowds(run_one(session, placement, runners[i], 2,
                         {entry_list(entries), cpu_list(session), budget_us}, crowd_limit_s),
                 runners[i], 2 * entries.size(), series[i]);
    }
  }
  for (const char* test : {"posted", "unexpected"}) {
    for (const unsigned count : entries) {
      for (std::size_t i = 0; i < runners.size(); ++i) {
        const CrowdSamples& samples = series[i][{test, count}];
        Row row = {{"mpi", runners[i].mpi->name()},
                   {"mpi_title", runners[i].mpi->title()},
                   {"transport", transport_name(runners[i].transport)},
                   {"test", test},
                   {"entries", count},
                   {"median_ns", round1(median(samples.median_ns))},
                   {"least_ns", round1(median(samples.least_ns))},
                   {"rounds", samples.median_ns.size()}};
        put_ratio(row, "ratio_to_one",
                  ratio_of(samples.median_ns, series[i][{test, entries.front()}].median_ns));
        const Runner* native = native_of(runners, runners[i]);
        if (native != nullptr && native != &runners[i]) {
          const auto other = static_cast<std::size_t>(native - runners.data());
          put_ratio(row, "ratio_to_native",
                    ratio_of(samples.median_ns, series[other][{test, count}].median_ns));
        }
        placement.describe(row);
        rows.push_back(std::move(row));
      }
    }
  }
}

constexpr auto mpi_matching_columns = columns_of(
    column::mpi, column::transport, column::test, Column{"entries", "entries", Unit::count},
    Column{"median_ns", "time", Unit::ns}, Column{"ratio_to_one", "of one", Unit::ratio},
    column::to_native, column::to_native_q25, column::to_native_q75, column::placement);

}  // namespace

const Suite mpi_matching_suite{
    "mpi-matching",
    "matching a message among up to 10,000 posted receives or unexpected messages, by each MPI",
    run_mpi_matching,
    mpi_matching_columns,
    true,
    why_no_messages};

}  // namespace haul::bench
