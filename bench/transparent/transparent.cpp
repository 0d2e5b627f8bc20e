// transparent: when a call of memcpy() into new memory returns, and when a program is done that
// copies, computes and reads the copy, under each plan of libhaul-mem.so.
#include <fmt/format.h>

#include <iterator>

#include "bench/kit/columns.hpp"
#include "bench/kit/trial.hpp"
#include "bench/transparent/late_calls.hpp"
#include "bench/transparent/preload.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

constexpr const char* late_plans[] = {"none",     "auto",     "caller",
                                      "together", "deferred", "protected"};
// How long the program computes between the call and its first look at the copy.
constexpr double computed_ns[] = {0, 20e6};

tools::Environment under_plan(const std::string& plan) {
  if (plan == "none") return {};
  tools::Environment environment = transparent_environment("");
  environment.emplace_back("HAUL_TRANSPARENT_PLAN", plan);
  return environment;
}

void race_plans(const SuiteRun& session, std::vector<Row>& rows, std::size_t bytes,
                bool huge_source, double compute_ns) {
  constexpr std::size_t plans = std::size(late_plans);
  Samples call_ns[plans], total_ns[plans], touch_ns[plans];
  std::vector<std::function<void(bool)>> bodies;
  for (std::size_t i = 0; i < plans; ++i) {
    bodies.emplace_back([&, i, environment = under_plan(late_plans[i])](bool measured) {
      const LateCallTimes times = time_late_calls(bytes, huge_source, compute_ns, environment);
      if (!measured) return;
      call_ns[i].push_back(times.call_ns);
      total_ns[i].push_back(times.total_ns);
      touch_ns[i].push_back(times.touch_ns);
    });
  }
  interleave(session.options.quick ? 3 : 9, bodies);
  for (std::size_t i = 0; i < plans; ++i) {
    Row row = {{"plan", late_plans[i]},
               {"page_size", huge_source ? "2 MiB" : "4 KiB"},
               {"fresh", true},
               {"size_bytes", bytes},
               {"compute_ns", compute_ns},
               {"blocking_ns", round1(median(call_ns[0]))},
               {"call_ns", round1(median(call_ns[i]))}};
    put_ratio(row, "call_ratio", ratio_of(call_ns[i], call_ns[0]));
    row["total_ns"] = round1(median(total_ns[i]));
    const Ratio total = ratio_of(total_ns[i], total_ns[0]);
    put_ratio(row, "total_ratio", total);
    row["spared_ratio"] = 1 - total.median;
    row["touch_ns"] = round1(median(touch_ns[i]));
    rows.push_back(row);
  }
}

void run_transparent_suite(SuiteRun& session, std::vector<Row>& rows) {
  using tools::mib;
  const std::vector<std::size_t> sizes =
      sizes_or(session.options, {mib, 4 * mib, 16 * mib, 64 * mib});
  double done = 0;
  const double all = static_cast<double>(sizes.size() * 2 * std::size(computed_ns));
  for (const std::size_t bytes : sizes) {
    for (const bool huge_source : {false, true}) {
      for (const double compute_ns : computed_ns) {
        session.options.progress(done++ / all, tools::show_bytes(bytes));
        race_plans(session, rows, bytes, huge_source, compute_ns);
      }
    }
  }
}

constexpr auto transparent_columns = columns_of(
    Column{"plan", "plan", Unit::text}, Column{"page_size", "source's pages", Unit::text},
    column::size, Column{"compute_ns", "computes", Unit::ns}, Column{"call_ns", "call", Unit::ns},
    Column{"call_ratio", "to none", Unit::ratio}, Column{"call_ratio_q25", "25 %", Unit::ratio},
    Column{"call_ratio_q75", "75 %", Unit::ratio}, column::total_ns,
    Column{"total_ratio", "to none", Unit::ratio}, Column{"total_ratio_q25", "25 %", Unit::ratio},
    Column{"total_ratio_q75", "75 %", Unit::ratio}, Column{"touch_ns", "touch", Unit::ns});

}  // namespace

const Suite transparent_suite{"transparent",
                              "memcpy() into new memory under each plan of haul run --transparent: "
                              "when it returns, and when a program that reads the copy is done",
                              run_transparent_suite,
                              transparent_columns,
                              false,
                              why_no_preload};

}  // namespace haul::bench
