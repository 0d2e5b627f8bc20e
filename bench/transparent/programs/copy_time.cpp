// copy-time: how long programs that know nothing of haul spend in their large copies, waits for
// bytes included, under each plan of libhaul-mem.so beside libc's blocking copies (paper 000, Fig.
// 10(a): gzip, copies from 64 KiB on). What a program writes is compared with what it writes
// without the library.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "bench/kit/columns.hpp"
#include "bench/kit/command.hpp"
#include "bench/kit/trial.hpp"
#include "bench/transparent/preload.hpp"
#include "bench/transparent/programs/workload.hpp"
#include "preload/mem/sites.hpp"
#include "tools/directory.hpp"

namespace haul::bench {
namespace {

// The first is what the others are compared with.
constexpr const char* copy_plans[] = {"libc", "caller", "together", "deferred", "protected"};
constexpr unsigned copying_limit_s = 60;

struct CopyTime {
  double ns = 0;
  std::uint64_t copies = 0, early = 0, bytes = 0, touches = 0;
};

void add_table(const preload::Table& table, CopyTime& sum) {
  sum.touches += table.touches.load();
  for (const preload::Site& site : table.sites) {
    for (const auto& by_size : site.kinds) {
      for (const preload::CallClass& kind : by_size) {
        for (std::size_t way = 0; way < preload::way_count; ++way) {
          const preload::WayTally& tally = kind.ways[way];
          sum.ns += static_cast<double>(tally.ns.load());
          sum.copies += tally.calls.load();
          sum.bytes += tally.bytes.load();
          if (preload::returns_early(static_cast<preload::Way>(way)))
            sum.early += tally.calls.load();
        }
      }
    }
  }
}

// Runs it once. Empty output: it failed, as a program may under the plan `protected`, whose memory
// system calls must not be given.
std::string run_once(const Workload& workload, const char* plan, CopyTime& time) {
  const tools::TemporaryDirectory tables;
  tools::Environment environment = transparent_environment(tables.path());
  environment.insert(environment.end(), workload.environment.begin(), workload.environment.end());
  environment.emplace_back("HAUL_TRANSPARENT_PLAN", plan);
  environment.emplace_back("HAUL_TRANSPARENT_FROM_BYTES", "64K");
  const CommandOutcome outcome = run_command(workload.command, environment, copying_limit_s);
  for (const auto& file : std::filesystem::directory_iterator(tables.path())) {
    const auto table = std::make_unique<preload::Table>();
    std::ifstream stream(file.path(), std::ios::binary);
    stream.read(reinterpret_cast<char*>(table.get()), sizeof *table);
    if (stream && table->magic == preload::table_magic) add_table(*table, time);
  }
  return outcome.good() ? outcome.out : "";
}

void time_program(SuiteRun& session, std::vector<Row>& rows, const Workload& workload) {
  constexpr std::size_t plans = std::size(copy_plans);
  Samples ns[plans];
  CopyTime last[plans];
  bool fails[plans] = {};
  std::string expected;
  std::vector<std::function<void(bool)>> bodies;
  for (std::size_t i = 0; i < plans; ++i) {
    bodies.emplace_back([&, i](bool measured) {
      if (fails[i]) return;
      last[i] = {};
      const std::string written = run_once(workload, copy_plans[i], last[i]);
      if (expected.empty()) expected = written;
      fails[i] = written.empty() || written != expected;
      if (measured) ns[i].push_back(last[i].ns);
    });
  }
  interleave(session.options.quick ? 3 : 9, bodies);
  for (std::size_t i = 0; i < plans; ++i) {
    if (fails[i]) {
      session.options.note(
          fmt::format("{} does not run under plan {}", workload.name, copy_plans[i]));
      continue;
    }
    if (last[i].copies == 0) return;
    Row row = {{"program", workload.name},
               {"plan", copy_plans[i]},
               {"copies", last[i].copies},
               {"early_copies", last[i].early},
               {"bytes", last[i].bytes},
               {"touches", last[i].touches},
               {"copy_time_ns", round1(median(ns[i]))}};
    put_ratio(row, "ratio", ratio_of(ns[i], ns[0]));
    rows.push_back(row);
  }
}

void run_copy_time(SuiteRun& session, std::vector<Row>& rows) {
  const tools::TemporaryDirectory directory;
  std::vector<Workload> all = workloads(directory.path(), session.options.note);
  // Those that write files make few large copies.
  std::erase_if(all, [](const Workload& workload) {
    return !workload.output.empty() ||
           !(workload.name.starts_with("python ") || workload.name.starts_with("numpy "));
  });
  double done = 0;
  for (const Workload& workload : all) {
    session.options.progress(done++ / static_cast<double>(all.size()), workload.name);
    time_program(session, rows, workload);
  }
}

constexpr auto copy_time_columns = columns_of(
    Column{"program", "program", Unit::text}, Column{"plan", "plan", Unit::text},
    Column{"copies", "copies", Unit::count}, Column{"early_copies", "early", Unit::count},
    Column{"touches", "waited for", Unit::count}, Column{"copy_time_ns", "copy time", Unit::ns},
    column::ratio, column::ratio_q25, column::ratio_q75);

}  // namespace

const Suite copy_time_suite{"copy-time",
                            "how long programs spend in copies from 64 KiB on, waits included, "
                            "under each plan of haul run --transparent (paper 000, Fig. 10(a))",
                            run_copy_time,
                            copy_time_columns,
                            false,
                            why_no_preload};

}  // namespace haul::bench
