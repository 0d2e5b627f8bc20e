// latency: one copy, submitted and waited for at once, against glibc's memcpy.
#include "bench/kit/columns.hpp"
#include "bench/kit/stats.hpp"
#include "bench/kit/trial.hpp"
#include "bench/kit/work.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

// A 99th percentile needs more samples than a median.
constexpr unsigned tail_factor = 3;

Row measure(SuiteRun& session, const Case& one) {
  CopyTrial trial(session.caches, one.bytes, one.cache);
  const auto [haul, memcpy, mover] = race_memcpy(
      trial, request_of(trial), tail_factor * repetitions_of(one.bytes, session.options.quick),
      [&] { return haul_wait(trial.copy()); });
  Row row = begin_row(mover, one);
  row["haul_ns"] = round1(median(haul));
  row["haul_p99_ns"] = round1(quantile(haul, 0.99));
  row["memcpy_ns"] = round1(median(memcpy));
  row["memcpy_p99_ns"] = round1(quantile(memcpy, 0.99));
  put_ratio(row, "ratio", ratio_of(haul, memcpy));
  end_row(row, mover, haul.size());
  return row;
}

void run_latency(SuiteRun& session, std::vector<Row>& rows) {
  measure_cases(session, rows, all_cases(session), measure);
}

constexpr auto latency_columns =
    columns_of(column::placement, column::cache, column::size, column::scheme, column::haul_ns,
               Column{"haul_p99_ns", "p99", Unit::ns}, column::memcpy_ns, column::ratio,
               column::ratio_q25, column::ratio_q75);

}  // namespace

const Suite latency_suite{"latency", "copy and wait at once, against memcpy", run_latency,
                          latency_columns, true};

}  // namespace haul::bench
