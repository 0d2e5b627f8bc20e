// nas (paper 000, Fig. 9; paper 001, Table III): times of the NAS kernels IS and FT, verified as
// NAS does it, while the transports take turns.
#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "bench/messages/mpi_columns.hpp"
#include "bench/messages/mpi_race.hpp"
#include "tools/directory.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr unsigned nas_rounds_full = 5, nas_rounds_quick = 3, nas_limit_s = 600;

struct Kernel {
  const char* name;
  const char* file;
};
constexpr Kernel kernels[] = {{"is", "nas_is.c"}, {"ft", "nas_ft.c"}};

struct NasSeries {
  Samples seconds, mops;
};

// "nas KERNEL CLASS RANKS SECONDS MOPS"; a kernel that could not verify its result has failed.
void add_output(const CommandOutcome& outcome, const Runner& runner, NasSeries& series) {
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string nas, kernel, class_name;
    unsigned ranks = 0;
    double seconds = 0, mops = 0;
    if (!(fields >> nas >> kernel >> class_name >> ranks >> seconds >> mops) || nas != "nas")
      continue;
    series.seconds.push_back(seconds);
    series.mops.push_back(mops);
    return;
  }
  throw tools::CommandFailure(
      fmt::format("{} printed no time: {}", describe(runner), reason_of(outcome)));
}

struct Race {
  const Kernel* kernel;
  std::string class_name;
  unsigned ranks;
};

void measure(SuiteRun& session, const std::vector<Runner>& runners, const Race& what,
             unsigned rounds, double& done, double launches, std::vector<Row>& rows) {
  std::vector<NasSeries> series(runners.size());
  CoreDistances placement(session);
  for (unsigned round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < runners.size(); ++i) {
      session.options.progress(done++ / launches,
                               fmt::format("{} {} with {} ranks, {}", what.kernel->name,
                                           what.class_name, what.ranks, describe(runners[i])));
      add_output(run_one(session, placement, runners[i], what.ranks,
                         {what.class_name, cpu_list(session)}, nas_limit_s),
                 runners[i], series[i]);
    }
  }
  for (std::size_t i = 0; i < runners.size(); ++i) {
    Row row = {{"mpi", runners[i].mpi->name()},
               {"mpi_title", runners[i].mpi->title()},
               {"transport", transport_name(runners[i].transport)},
               {"kernel", what.kernel->name},
               {"class", what.class_name},
               {"ranks", what.ranks},
               {"oversubscribed", what.ranks > session.stage.topology().allowed_count},
               {"seconds", std::round(median(series[i].seconds) * 1e6) * 1e-6},
               {"mops", round1(median(series[i].mops))},
               {"verified", true},
               {"rounds", series[i].seconds.size()}};
    const Runner* native = native_of(runners, runners[i]);
    if (native != nullptr && native != &runners[i]) {
      const auto other = static_cast<std::size_t>(native - runners.data());
      put_ratio(row, "ratio_to_native", ratio_of(series[i].seconds, series[other].seconds));
    }
    placement.describe(row);
    rows.push_back(std::move(row));
  }
}

void run_nas(SuiteRun& session, std::vector<Row>& rows) {
  const bool quick = session.options.quick;
  std::vector<std::string> classes = session.options.mpi.classes;
  if (classes.empty())
    classes = quick ? std::vector<std::string>{"S"} : std::vector<std::string>{"S", "W", "A"};
  std::vector<unsigned> ranks = session.options.mpi.ranks;
  if (ranks.empty()) ranks = {2, 4};
  for (unsigned count : ranks) {
    if (count < 2 || (count & (count - 1)) != 0)
      throw tools::CommandFailure(
          fmt::format("the NAS kernels run with 2, 4, 8, ... ranks, not with {}", count));
  }
  const std::vector<MpiPeer> mpis = choose_mpis(session);
  const tools::TemporaryDirectory directory;
  const unsigned rounds = quick ? nas_rounds_quick : nas_rounds_full;
  double done = 0;
  for (const Kernel& kernel : kernels) {
    std::vector<std::string> programs;
    for (const MpiPeer& mpi : mpis) {
      session.options.progress(0, fmt::format("compiling with {}", mpi.title()));
      programs.push_back(
          mpi.build(directory.path(), kernel.name, {kernel.file, "nas.c", "common.c"}));
    }
    const std::vector<Runner> runners =
        choose_runners(session, mpis, programs, {"S", cpu_list(session), "early"});
    const auto launches = static_cast<double>(std::size(kernels) * classes.size() * ranks.size() *
                                              rounds * runners.size());
    for (const std::string& class_name : classes) {
      for (unsigned count : ranks)
        measure(session, runners, {&kernel, class_name, count}, rounds, done, launches, rows);
    }
  }
}

constexpr auto nas_columns =
    columns_of(column::mpi, column::transport, Column{"kernel", "kernel", Unit::text},
               Column{"class", "class", Unit::text}, column::ranks,
               Column{"seconds", "time", Unit::seconds}, Column{"mops", "Mop/s", Unit::ratio},
               column::to_native, column::to_native_q25, column::to_native_q75, column::placement);

}  // namespace

const Suite nas_suite{
    "nas",
    "the NAS kernels IS and FT under each MPI, verified (paper 000, Fig. 9; 001, Table III)",
    run_nas,
    nas_columns,
    true,
    why_no_messages};

}  // namespace haul::bench
