// latency: one copy, submitted and waited for at once, against glibc's memcpy.
#include "bench/copy/schemes/measurement.hpp"
#include "bench/copy/schemes/schemes.hpp"
#include "bench/kit/columns.hpp"
#include "bench/kit/stats.hpp"
#include "bench/kit/trial.hpp"
#include "bench/kit/work.hpp"

namespace haul::bench {
namespace {

// A 99th percentile needs more samples than a median.
constexpr unsigned tail_factor = 3;

Findings measure_latency(const CopyBench& bench, const Case& one) {
  CopyTrial trial(bench.caches, one.bytes, one.cache);
  const auto copy = [&] { return bench.wait(trial.copy()); };
  return race_and_costs(bench, trial, request_of(trial), bench.repetitions(one.bytes, tail_factor),
                        copy);
}

Row latency_row(const Case& one, const Findings& findings) {
  const Samples &haul = findings.of("haul"), &memcpy = findings.of("memcpy");
  Row row = begin_row(findings.mover, one);
  row["haul_ns"] = round1(median(haul));
  row["haul_p99_ns"] = round1(quantile(haul, 0.99));
  row["memcpy_ns"] = round1(median(memcpy));
  row["memcpy_p99_ns"] = round1(quantile(memcpy, 0.99));
  put_ratio(row, "ratio", ratio_of(haul, memcpy));
  end_row(row, findings.mover, haul.size());
  return row;
}

void run_latency(SuiteRun& session, std::vector<Row>& rows) {
  run_measurement(session, rows, latency_measurement, all_cases(session));
}

constexpr auto latency_columns =
    columns_of(column::placement, column::cache, column::size, column::scheme, column::haul_ns,
               Column{"haul_p99_ns", "p99", Unit::ns}, column::memcpy_ns, column::ratio,
               column::ratio_q25, column::ratio_q75);

}  // namespace

const CopyMeasurement latency_measurement{"latency", measure_latency, latency_row};

const Suite latency_suite{
    "latency", "copy and wait at once, against memcpy", run_latency, latency_columns, true, nullptr,
    true};

}  // namespace haul::bench
