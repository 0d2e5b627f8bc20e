// order: a consumer sums a copy front to back, in steps, while the copy still runs; compared with
// memcpy followed by a sum.
#include <algorithm>

#include "bench/kit/columns.hpp"
#include "bench/kit/stats.hpp"
#include "bench/kit/trial.hpp"
#include "bench/kit/work.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

constexpr std::size_t step_bytes = std::size_t{64} << 10;

Row measure(SuiteRun& session, const Case& one) {
  const std::size_t bytes = one.bytes;
  CopyTrial trial(session.caches, bytes, one.cache);
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
                trial.copy_by_memcpy();
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
  Row row = begin_row(mover, one);
  row["memcpy_ns"] = round1(median(memcpy));
  row["sum_ns"] = round1(median(sum));
  row["total_ns"] = round1(median(total));
  row["first_step_ns"] = round1(median(first));
  put_ratio(row, "ratio", ratio_of(total, both));
  end_row(row, mover, total.size());
  return row;
}

void run_order(SuiteRun& session, std::vector<Row>& rows) {
  measure_cases(session, rows, cold_cases(session, {std::size_t{16} << 20}), measure);
}

constexpr auto order_columns =
    columns_of(column::placement, column::cache, column::size, column::scheme, column::memcpy_ns,
               Column{"sum_ns", "sum", Unit::ns}, column::total_ns,
               Column{"first_step_ns", "first 64K", Unit::ns}, column::ratio, column::ratio_q25,
               column::ratio_q75);

}  // namespace

const Suite order_suite{"order", "sum a large copy front to back while it is being made", run_order,
                        order_columns, true};

}  // namespace haul::bench
