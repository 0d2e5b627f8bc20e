// mpi-overlap: which part of a message's time either side can compute in, in the manner of IMB-NBC
// and in that of paper 004, section 3.2.
//
// While a rank computes, somebody else must move the bytes: the other rank, or a thread of the
// library's, which needs a CPU that no rank has. Where there is none, a row says so.
#include <fmt/format.h>

#include <map>

#include "bench/messages/mpi_columns.hpp"
#include "bench/messages/mpi_race.hpp"
#include "tools/directory.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

constexpr unsigned overlap_ranks = 2;
constexpr unsigned overlap_rounds_full = 5, overlap_rounds_quick = 3, overlap_limit_s = 300;
constexpr unsigned overlap_budget_us = 200000, overlap_budget_quick_us = 10000;  // for each figure

const std::vector<std::string>& overlap_tests() {
  static const std::vector<std::string> names = {"nbc", "stream"};
  return names;
}

// The figures of one side and size, an entry for each round.
struct OverlapSeries {
  Samples pure_us, cpu_us, overlapped_us, ratio;
};
struct OverlapSides {
  OverlapSeries sender, receiver;
};
using OverlapSizes = std::map<std::size_t, OverlapSides>;

// "overlap TEST BYTES SIDE PURE_US CPU_US OVERLAPPED_US RATIO"
void add_overlap_output(const CommandOutcome& outcome, const Runner& runner, std::size_t wanted,
                        OverlapSizes& sizes) {
  take_figures(outcome, runner, "overlap", wanted, [&](std::istringstream& fields) {
    std::string test, side;
    std::size_t bytes = 0;
    double pure_us = 0, cpu_us = 0, overlapped_us = 0, ratio = 0;
    if (!(fields >> test >> bytes >> side >> pure_us >> cpu_us >> overlapped_us >> ratio))
      return false;
    OverlapSeries& series = side == "sender" ? sizes[bytes].sender : sizes[bytes].receiver;
    series.pure_us.push_back(pure_us);
    series.cpu_us.push_back(cpu_us);
    series.overlapped_us.push_back(overlapped_us);
    series.ratio.push_back(ratio);
    return true;
  });
}

void put_side(Row& row, const std::string& side, const OverlapSeries& series) {
  row[side + "_pure_us"] = round3(median(series.pure_us));
  row[side + "_cpu_us"] = round3(median(series.cpu_us));
  row[side + "_overlapped_us"] = round3(median(series.overlapped_us));
  put_ratio(row, side + "_overlap_ratio", spread_of(series.ratio));
}

void measure_overlap(SuiteRun& session, const std::vector<Runner>& runners, const std::string& test,
                     const std::vector<std::size_t>& sizes, std::vector<Row>& rows) {
  const bool quick = session.options.quick;
  const unsigned rounds = quick ? overlap_rounds_quick : overlap_rounds_full;
  const unsigned cpus = session.stage.topology().allowed_count;
  const std::vector<std::string> arguments = {
      test, fmt::format("{}", fmt::join(sizes, ",")), cpu_list(session),
      std::to_string(quick ? overlap_budget_quick_us : overlap_budget_us)};
  std::vector<OverlapSizes> series(runners.size());
  CoreDistances placement(session);
  for (unsigned round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < runners.size(); ++i) {
      session.options.progress(static_cast<double>(round) / rounds,
                               fmt::format("{}, {}", test, describe(runners[i])));
      add_overlap_output(
          run_one(session, placement, runners[i], overlap_ranks, arguments, overlap_limit_s),
          runners[i], 2 * sizes.size(), series[i]);
    }
  }
  for (std::size_t bytes : sizes) {
    for (std::size_t i = 0; i < runners.size(); ++i) {
      Row row = {{"mpi", runners[i].mpi->name()},
                 {"mpi_title", runners[i].mpi->title()},
                 {"transport", transport_name(runners[i].transport)},
                 {"test", test},
                 {"ranks", overlap_ranks},
                 {"cpus", cpus},
                 {"size_bytes", bytes}};
      put_side(row, "sender", series[i].at(bytes).sender);
      put_side(row, "receiver", series[i].at(bytes).receiver);
      row["rounds"] = rounds;
      placement.describe(row);
      row["label"] = cpus > overlap_ranks ? "" : "no free core";
      rows.push_back(std::move(row));
    }
  }
}

void run_mpi_overlap(SuiteRun& session, std::vector<Row>& rows) {
  using tools::kib;
  using tools::mib;
  const bool quick = session.options.quick;
  const std::vector<std::size_t> few = {64 * kib, mib}, many = {64 * kib, 256 * kib, mib, 4 * mib};
  const std::vector<std::size_t> sizes = sizes_or(session.options, quick ? few : many);
  const std::vector<MpiPeer> mpis = choose_mpis(session);
  const tools::TemporaryDirectory directory;
  std::vector<std::string> programs;
  for (const MpiPeer& mpi : mpis) {
    session.options.progress(0, fmt::format("compiling with {}", mpi.title()));
    programs.push_back(
        mpi.build(directory.path(), "overlap", {"overlap.c", "common.c", "content.c"}));
  }
  std::vector<Runner> runners =
      choose_runners(session, mpis, programs, {"nbc", "65536", cpu_list(session), "100", "early"},
                     {Transport::haul, Transport::native});
  // The libraries' threads may then have the CPUs that no rank has.
  for (Runner& runner : runners)
    runner.pin_late = session.stage.topology().allowed_count > overlap_ranks;
  for (const std::string& test : tests_or(session, overlap_tests(), overlap_tests()))
    measure_overlap(session, runners, test, sizes, rows);
}

constexpr auto mpi_overlap_columns =
    columns_of(column::mpi, column::transport, column::test, column::size,
               Column{"sender_overlap_ratio", "sender hides", Unit::ratio},
               Column{"sender_overlap_ratio_q25", "25 %", Unit::ratio},
               Column{"sender_overlap_ratio_q75", "75 %", Unit::ratio},
               Column{"receiver_overlap_ratio", "receiver hides", Unit::ratio},
               Column{"receiver_overlap_ratio_q25", "25 %", Unit::ratio},
               Column{"receiver_overlap_ratio_q75", "75 %", Unit::ratio},
               Column{"receiver_pure_us", "message", Unit::us},
               Column{"receiver_overlapped_us", "with work", Unit::us},
               Column{"cpus", "CPUs", Unit::count}, column::placement, column::label);

}  // namespace

const Suite mpi_overlap_suite{
    "mpi-overlap",
    "how much of a message's time can be computed in, on both sides (paper 004, 3.2)",
    run_mpi_overlap,
    mpi_overlap_columns,
    true,
    why_no_messages,
    false,
    overlap_tests};

}  // namespace haul::bench
