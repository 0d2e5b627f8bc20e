// checked: what HAUL_CHECKED costs. The kernel's copy against the CPU's own, both on the caller's
// thread.
#include "bench/kit/columns.hpp"
#include "bench/kit/stats.hpp"
#include "bench/kit/trial.hpp"
#include "bench/kit/work.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

double inline_copy_ns(CopyTrial& trial, haul_request request) {
  request.flags |= HAUL_INLINE;
  haul_ticket ticket{};
  int taken = 0;
  const double ns = timed_ns([&] { taken = haul_submit(&request, 1, &ticket); });
  tools::require(taken, "haul_submit()");
  tools::require(haul_wait(ticket), "haul_wait()");
  trial.check();
  return ns;
}

Row measure(SuiteRun& session, const Case& one) {
  CopyTrial trial(session.caches, one.bytes, one.cache);
  const haul_request plain = request_of(trial);
  haul_request checked = plain;
  checked.flags |= HAUL_CHECKED;
  Samples checked_ns, unchecked_ns;
  const auto run = [&](const haul_request& request, Samples& samples) {
    return [&](bool measured) {
      trial.prepare();
      const double ns = inline_copy_ns(trial, request);
      if (measured) samples.push_back(ns);
    };
  };
  trial.prepare();
  MoverWatch watch(checked);
  interleave(repetitions_of(one.bytes, session.options.quick),
             {run(checked, checked_ns), run(plain, unchecked_ns)});
  Row row = {{"scheme", "SCNI"},
             {"engine", watch.finish().engine},
             {"cache", cache_name(one.cache)},
             {"size_bytes", one.bytes},
             {"checked_ns", round1(median(checked_ns))},
             {"unchecked_ns", round1(median(unchecked_ns))}};
  put_ratio(row, "ratio", ratio_of(checked_ns, unchecked_ns));
  row["repetitions"] = checked_ns.size();
  return row;
}

void run_checked(SuiteRun& session, std::vector<Row>& rows) {
  measure_cases(session, rows, all_cases(session), measure);
}

constexpr auto checked_columns = columns_of(
    column::cache, column::size, Column{"engine", "engine", Unit::text},
    Column{"checked_ns", "checked", Unit::ns}, Column{"unchecked_ns", "unchecked", Unit::ns},
    column::ratio, column::ratio_q25, column::ratio_q75);

}  // namespace

const Suite checked_suite{"checked", "the price of HAUL_CHECKED, both on the caller's thread",
                          run_checked, checked_columns};

}  // namespace haul::bench
