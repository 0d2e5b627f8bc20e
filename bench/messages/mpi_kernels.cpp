// mpi-kernels (paper 000, Fig. 9): what PSTSWM and stencils send, without what they compute:
// transpositions of a field between distributions, and exchanges of halos.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string_view>

#include "bench/messages/mpi_columns.hpp"
#include "bench/messages/mpi_race.hpp"
#include "tools/directory.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

constexpr unsigned kernel_rounds_full = 5, kernel_rounds_quick = 3, kernel_limit_s = 300;
constexpr unsigned kernel_budget_us = 200000, kernel_budget_quick_us = 20000;  // for each figure

// What a program calls its forms: of `halo`, the dimensions and the width.
struct FieldKernel {
  const char* test;
  const char* file;
  std::vector<std::string> forms, forms_quick;
};
const std::vector<FieldKernel>& field_kernels() {
  static const std::vector<FieldKernel> all = {
      {"transpose", "spectral.c", {"exchange", "alltoall"}, {"exchange", "alltoall"}},
      {"halo", "halo.c", {"2d-1", "2d-4", "3d-1", "3d-2", "3d-4"}, {"2d-1", "3d-2"}}};
  return all;
}

const std::vector<std::string>& kernel_tests() {
  static const std::vector<std::string> names = {"transpose", "halo"};
  return names;
}

// The figures of one size, an entry for each round.
struct KernelSeries {
  Samples us, comm_share;
  std::size_t message_bytes = 0;
};
using KernelSizes = std::map<std::size_t, KernelSeries>;

// "kernel FORM RANKS FIELD_BYTES MESSAGE_BYTES US COMM_SHARE"
void add_kernel_output(const CommandOutcome& outcome, const Runner& runner, std::size_t wanted,
                       KernelSizes& sizes) {
  take_figures(outcome, runner, "kernel", wanted, [&](std::istringstream& fields) {
    std::string form;
    unsigned ranks = 0;
    std::size_t field_bytes = 0, message_bytes = 0;
    double us = 0, comm_share = 0;
    if (!(fields >> form >> ranks >> field_bytes >> message_bytes >> us >> comm_share))
      return false;
    KernelSeries& series = sizes[field_bytes];
    series.us.push_back(us);
    series.comm_share.push_back(comm_share);
    series.message_bytes = message_bytes;
    return true;
  });
}

struct FieldRace {
  const FieldKernel& kernel;
  std::string form;
  unsigned ranks;
  std::vector<std::size_t> sizes;
};

void measure_form(SuiteRun& session, const std::vector<Runner>& runners, const FieldRace& what,
                  std::vector<Row>& rows) {
  const bool quick = session.options.quick;
  const unsigned rounds = quick ? kernel_rounds_quick : kernel_rounds_full;
  const std::vector<std::string> arguments = {
      what.form, fmt::format("{}", fmt::join(what.sizes, ",")), cpu_list(session),
      std::to_string(quick ? kernel_budget_quick_us : kernel_budget_us)};
  std::vector<KernelSizes> series(runners.size());
  CoreDistances placement(session);
  for (unsigned round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < runners.size(); ++i) {
      session.options.progress(static_cast<double>(round) / rounds,
                               fmt::format("{} {} with {} ranks, {}", what.kernel.test, what.form,
                                           what.ranks, describe(runners[i])));
      add_kernel_output(
          run_one(session, placement, runners[i], what.ranks, arguments, kernel_limit_s),
          runners[i], what.sizes.size(), series[i]);
    }
  }
  for (std::size_t bytes : what.sizes) {
    for (std::size_t i = 0; i < runners.size(); ++i) {
      const KernelSeries& own = series[i].at(bytes);
      Row row = {{"mpi", runners[i].mpi->name()},
                 {"mpi_title", runners[i].mpi->title()},
                 {"transport", transport_name(runners[i].transport)},
                 {"test", what.kernel.test},
                 {"form", what.form},
                 {"ranks", what.ranks},
                 {"oversubscribed", what.ranks > session.stage.topology().allowed_count},
                 {"size_bytes", bytes},
                 {"message_bytes", own.message_bytes},
                 {"median_us", round3(median(own.us))},
                 {"q25_us", round3(quantile(own.us, 0.25))},
                 {"q75_us", round3(quantile(own.us, 0.75))},
                 {"comm_share", round3(median(own.comm_share))},
                 {"rounds", own.us.size()}};
      const Runner* native = native_of(runners, runners[i]);
      if (native != nullptr && native != &runners[i]) {
        const auto other = static_cast<std::size_t>(native - runners.data());
        put_ratio(row, "ratio_to_native", ratio_of(own.us, series[other].at(bytes).us));
      }
      placement.describe(row);
      rows.push_back(std::move(row));
    }
  }
}

void run_mpi_kernels(SuiteRun& session, std::vector<Row>& rows) {
  using tools::kib;
  using tools::mib;
  const bool quick = session.options.quick;
  const std::vector<std::size_t> few = {64 * kib, mib},
                                 many = {64 * kib, 512 * kib, 4 * mib, 32 * mib};
  const std::vector<std::size_t> sizes = sizes_or(session.options, quick ? few : many);
  for (std::size_t bytes : sizes) {
    if (bytes < 4 * kib || !std::has_single_bit(bytes))
      throw tools::CommandFailure(fmt::format(
          "a field of {} bytes does not divide evenly; use powers of two from 4K on", bytes));
  }
  const std::vector<unsigned> ranks = asked_or(session.options.mpi.ranks, {2, 4});
  for (unsigned count : ranks) {
    if (!std::has_single_bit(count))
      throw tools::CommandFailure(
          fmt::format("the kernels run with 2, 4, 8, ... ranks, not with {}", count));
  }
  const std::vector<std::string> tests = tests_or(session, kernel_tests(), kernel_tests());
  const std::vector<MpiPeer> mpis = choose_mpis(session);
  const tools::TemporaryDirectory directory;
  for (const FieldKernel& kernel : field_kernels()) {
    if (std::find(tests.begin(), tests.end(), kernel.test) == tests.end()) continue;
    const std::vector<std::string>& forms = quick ? kernel.forms_quick : kernel.forms;
    std::vector<std::string> programs;
    for (const MpiPeer& mpi : mpis) {
      session.options.progress(0, fmt::format("compiling with {}", mpi.title()));
      programs.push_back(mpi.build(directory.path(), kernel.test,
                                   {kernel.file, "kernel.c", "common.c", "timed.c"}));
    }
    const std::vector<Runner> runners = choose_runners(
        session, mpis, programs, {forms.front(), "65536", cpu_list(session), "100", "early"});
    for (const std::string& form : forms)
      for (unsigned count : ranks)
        measure_form(session, runners, {kernel, form, count, sizes}, rows);
  }
}

constexpr auto mpi_kernels_columns = columns_of(
    column::mpi, column::transport, column::test, Column{"form", "form", Unit::text}, column::ranks,
    column::size, Column{"message_bytes", "message", Unit::bytes}, column::time, column::comm_share,
    column::to_native, column::to_native_q25, column::to_native_q75, column::placement);

}  // namespace

const Suite mpi_kernels_suite{
    "mpi-kernels",
    "transposed fields and halos under each MPI, verified (paper 000, Fig. 9: PSTSWM)",
    run_mpi_kernels,
    mpi_kernels_columns,
    true,
    why_no_messages,
    false,
    kernel_tests};

}  // namespace haul::bench
