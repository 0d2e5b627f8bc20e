// latency: one copy, submitted and waited for at once, against glibc's memcpy.
#include "bench/kit/stats.hpp"
#include "bench/kit/suite.hpp"
#include "bench/kit/trial.hpp"
#include "bench/kit/work.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

// A 99th percentile needs more samples than a median.
constexpr unsigned tail_factor = 3;

Row measure(SuiteRun& session, const Case& one) {
  CopyTrial trial(session.caches, one.bytes, one.cache);
  Samples haul, memcpy;
  trial.prepare();
  MoverWatch watch(request_of(trial));
  interleave(tail_factor * repetitions_of(one.bytes, session.options.quick),
             {[&](bool measured) {
                trial.prepare();
                int status = 0;
                double ns = timed_ns([&] { status = haul_wait(trial.copy()); });
                tools::require(status, "haul_wait()");
                trial.check();
                if (measured) haul.push_back(ns);
              },
              [&](bool measured) {
                trial.prepare();
                double ns =
                    timed_ns([&] { glibc_memcpy(trial.dst(), trial.src(), trial.bytes()); });
                trial.check();
                if (measured) memcpy.push_back(ns);
              }});
  WhoCopied mover = watch.finish();
  Ratio ratio = ratio_of(haul, memcpy);
  return {{"scheme", mover.scheme},
          {"engine", mover.engine},
          {"cache", cache_name(one.cache)},
          {"placement", ""},
          {"size_bytes", one.bytes},
          {"haul_ns", round1(median(haul))},
          {"haul_p99_ns", round1(quantile(haul, 0.99))},
          {"memcpy_ns", round1(median(memcpy))},
          {"memcpy_p99_ns", round1(quantile(memcpy, 0.99))},
          {"ratio", round3(ratio.median)},
          {"ratio_q25", round3(ratio.low)},
          {"ratio_q75", round3(ratio.high)},
          {"dedicated_share", round3(mover.dedicated_share)},
          {"repetitions", haul.size()}};
}

}  // namespace

void run_latency(SuiteRun& session, std::vector<Row>& rows) {
  measure_cases(session, rows, measure);
}

}  // namespace haul::bench
