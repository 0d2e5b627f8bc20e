// nas (paper 000, Fig. 9; paper 001, Table III): times of the NAS kernels IS, FT, CG and MG,
// verified as NAS does it, while the transports take turns.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/kit/buffer.hpp"
#include "bench/messages/mpi_columns.hpp"
#include "bench/messages/mpi_race.hpp"
#include "tools/directory.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

constexpr unsigned nas_rounds_full = 5, nas_rounds_quick = 3, nas_limit_s = 600;

constexpr std::string_view nas_classes = "SWABC";

struct Kernel {
  const char* name;
  const char* file;
  unsigned most_ranks;
  unsigned mib[nas_classes.size()];  // that all ranks together need, by class
};
constexpr Kernel kernels[] = {{"is", "nas_is.c", 1024, {2, 20, 160, 640, 2560}},
                              {"ft", "nas_ft.c", 32, {14, 28, 448, 1792, 7168}},
                              {"cg", "nas_cg.c", 64, {3, 16, 56, 400, 1100}},
                              {"mg", "nas_mg.c", 8, {1, 54, 440, 440, 3500}}};

const std::vector<std::string>& nas_tests() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Kernel& kernel : kernels) all.emplace_back(kernel.name);
    return all;
  }();
  return names;
}

// Says why if not.
bool fits(const SuiteRun& session, const Kernel& kernel, const std::string& class_name,
          unsigned ranks) {
  if (ranks > kernel.most_ranks) {
    session.options.note(fmt::format("{} is left out with {} ranks; it runs with {} at most",
                                     kernel.name, ranks, kernel.most_ranks));
    return false;
  }
  const std::size_t needed = kernel.mib[nas_classes.find(class_name)] * tools::mib;
  const std::size_t available = available_bytes();
  if (needed <= available) return true;
  session.options.note(fmt::format(
      "{} of class {} is left out, as it needs {} of memory and {} are available; free some, or "
      "choose a smaller class",
      kernel.name, class_name, tools::show_bytes(needed), tools::show_bytes(available)));
  return false;
}

struct NasSeries {
  Samples seconds, mops, comm_share;
};

// "nas KERNEL CLASS RANKS SECONDS MOPS COMM_SHARE"; a kernel that could not verify its result has
// failed.
void add_output(const CommandOutcome& outcome, const Runner& runner, NasSeries& series) {
  take_figures(outcome, runner, "nas", 1, [&](std::istringstream& fields) {
    std::string kernel, class_name;
    unsigned ranks = 0;
    double seconds = 0, mops = 0, comm_share = 0;
    if (!(fields >> kernel >> class_name >> ranks >> seconds >> mops >> comm_share)) return false;
    series.seconds.push_back(seconds);
    series.mops.push_back(mops);
    series.comm_share.push_back(comm_share);
    return true;
  });
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
               {"comm_share", round3(median(series[i].comm_share))},
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
  const std::vector<std::string> tests = tests_or(session, nas_tests(), nas_tests());
  for (const Kernel& kernel : kernels) {
    if (std::find(tests.begin(), tests.end(), kernel.name) == tests.end()) continue;
    std::vector<std::string> programs;
    for (const MpiPeer& mpi : mpis) {
      session.options.progress(0, fmt::format("compiling with {}", mpi.title()));
      programs.push_back(
          mpi.build(directory.path(), kernel.name, {kernel.file, "nas.c", "common.c", "timed.c"}));
    }
    const std::vector<Runner> runners =
        choose_runners(session, mpis, programs, {"S", cpu_list(session), "early"});
    const auto launches =
        static_cast<double>(tests.size() * classes.size() * ranks.size() * rounds * runners.size());
    for (const std::string& class_name : classes) {
      for (unsigned count : ranks) {
        if (fits(session, kernel, class_name, count))
          measure(session, runners, {&kernel, class_name, count}, rounds, done, launches, rows);
      }
    }
  }
}

constexpr auto nas_columns = columns_of(
    column::mpi, column::transport, Column{"kernel", "kernel", Unit::text},
    Column{"class", "class", Unit::text}, column::ranks, Column{"seconds", "time", Unit::seconds},
    Column{"mops", "Mop/s", Unit::ratio}, column::comm_share, column::to_native,
    column::to_native_q25, column::to_native_q75, column::placement);

}  // namespace

const Suite nas_suite{"nas",
                      "the NAS kernels IS, FT, CG and MG under each MPI, verified (paper 000, Fig. "
                      "9; 001, Table III)",
                      run_nas,
                      nas_columns,
                      true,
                      why_no_messages,
                      false,
                      nas_tests};

}  // namespace haul::bench
