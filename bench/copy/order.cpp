// order: a consumer sums a copy front to back, in steps, while the copy runs. Against memcpy, then
// sum.
#include <algorithm>

#include "bench/kit/stats.hpp"
#include "bench/kit/suite.hpp"
#include "bench/kit/trial.hpp"
#include "bench/kit/work.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

constexpr std::size_t step_bytes = std::size_t{64} << 10;

Row measure(SuiteRun& session, std::size_t bytes) {
  CopyTrial trial(session.caches, bytes, CacheState::cold);
  Samples memcpy, sum, both, total, first;
  trial.prepare();
  MoverWatch watch(request_of(trial));
  interleave(repetitions_of(bytes, session.options.quick),
             {[&](bool measured) {
                trial.prepare();
                int status = 0;
                std::uint64_t first_done = 0, result = 0;
                std::uint64_t begin = fenced_ticks();
                haul_ticket ticket = trial.copy();
                for (std::size_t at = 0; at < bytes; at += step_bytes) {
                  std::size_t length = std::min(step_bytes, bytes - at);
                  status = std::min(status, haul_wait_range(ticket, at, length));
                  if (at == 0) first_done = ticks();
                  result += vector_sum(trial.dst() + at, length);
                }
                keep(result);
                std::uint64_t end = fenced_ticks();
                tools::require(status, "haul_wait_range()");
                tools::require(haul_wait(ticket), "haul_wait()");
                trial.check();
                if (!measured) return;
                total.push_back(span_ns(end - begin));
                first.push_back(span_ns(first_done - begin));
              },
              [&](bool measured) {
                trial.prepare();
                std::uint64_t begin = fenced_ticks();
                glibc_memcpy(trial.dst(), trial.src(), bytes);
                std::uint64_t copied = fenced_ticks();
                keep(vector_sum(trial.dst(), bytes));
                std::uint64_t end = fenced_ticks();
                trial.check();
                if (!measured) return;
                memcpy.push_back(span_ns(copied - begin));
                sum.push_back(span_ns(end - copied));
                both.push_back(span_ns(end - begin));
              }});
  WhoCopied mover = watch.finish();
  Ratio ratio = ratio_of(total, both);
  return {{"scheme", mover.scheme},
          {"engine", mover.engine},
          {"cache", cache_name(CacheState::cold)},
          {"placement", ""},
          {"size_bytes", bytes},
          {"memcpy_ns", round1(median(memcpy))},
          {"sum_ns", round1(median(sum))},
          {"total_ns", round1(median(total))},
          {"first_step_ns", round1(median(first))},
          {"ratio", round3(ratio.median)},
          {"ratio_q25", round3(ratio.low)},
          {"ratio_q75", round3(ratio.high)},
          {"dedicated_share", round3(mover.dedicated_share)},
          {"repetitions", total.size()}};
}

}  // namespace

void run_order(SuiteRun& session, std::vector<Row>& rows) {
  static const std::vector<std::size_t> own = {std::size_t{16} << 20};
  const std::vector<std::size_t>& sizes = sizes_or(session.options, own);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    session.options.progress(static_cast<double>(i) / static_cast<double>(sizes.size()),
                             describe({CacheState::cold, sizes[i]}));
    add_placed(session, rows, measure(session, sizes[i]));
  }
}

}  // namespace haul::bench
