// checked: what HAUL_CHECKED costs, the kernel's copy against the CPU's own; both on the caller.
#include "bench/kit/stats.hpp"
#include "bench/kit/suite.hpp"
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
  const Ratio ratio = ratio_of(checked_ns, unchecked_ns);
  return {{"scheme", "SCNI"},
          {"engine", watch.finish().engine},
          {"cache", cache_name(one.cache)},
          {"size_bytes", one.bytes},
          {"checked_ns", round1(median(checked_ns))},
          {"unchecked_ns", round1(median(unchecked_ns))},
          {"ratio", round3(ratio.median)},
          {"ratio_q25", round3(ratio.low)},
          {"ratio_q75", round3(ratio.high)},
          {"repetitions", checked_ns.size()}};
}

}  // namespace

void run_checked(SuiteRun& session, std::vector<Row>& rows) {
  measure_cases(session, rows, measure);
}

}  // namespace haul::bench
