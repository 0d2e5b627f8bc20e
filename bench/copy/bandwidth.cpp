// bandwidth: a size cut into a window of requests in flight, against one memcpy of that size.
#include <algorithm>
#include <array>

#include "bench/copy/schemes/measurement.hpp"
#include "bench/copy/schemes/schemes.hpp"
#include "bench/kit/columns.hpp"
#include "bench/kit/stats.hpp"
#include "bench/kit/trial.hpp"
#include "bench/kit/work.hpp"

namespace haul::bench {
namespace {

constexpr std::size_t widest_window = 8;
constexpr std::size_t least_piece_bytes = 64;

// Every piece but the last is a number of whole cache lines.
struct Cut {
  std::size_t window, piece_bytes;
  explicit Cut(std::size_t bytes)
      : window(std::clamp<std::size_t>(bytes / least_piece_bytes, 1, widest_window)),
        piece_bytes(window == 1 ? bytes : bytes / window / line_bytes * line_bytes) {}
};

int copy_in_pieces(const CopyBench& bench, CopyTrial& trial, const Cut& cut) {
  std::array<haul_ticket, widest_window> tickets;
  for (std::size_t i = 0; i < cut.window; ++i) {
    std::size_t begin = i * cut.piece_bytes;
    std::size_t bytes = i + 1 == cut.window ? trial.bytes() - begin : cut.piece_bytes;
    tickets[i] = haul_copy(trial.dst() + begin, trial.src() + begin, bytes);
  }
  int status = 0;
  for (std::size_t i = 0; i < cut.window; ++i) status = std::min(status, bench.wait(tickets[i]));
  return status;
}

Findings measure_bandwidth(const CopyBench& bench, const Case& one) {
  CopyTrial trial(bench.caches, one.bytes, one.cache);
  const Cut cut(one.bytes);
  const auto copy = [&] { return copy_in_pieces(bench, trial, cut); };
  const haul_request piece = haul_request_copy(trial.dst(), trial.src(), cut.piece_bytes);
  return race_and_costs(bench, trial, piece, bench.repetitions(one.bytes), copy);
}

Row bandwidth_row(const Case& one, const Findings& findings) {
  const Samples &haul = findings.of("haul"), &memcpy = findings.of("memcpy");
  // A byte a nanosecond is a GB/s.
  auto gbps = [&](const Samples& samples) {
    return round3(static_cast<double>(one.bytes) / std::max(median(samples), 0.1));
  };
  Row row = begin_row(findings.mover, one);
  row["window"] = Cut(one.bytes).window;
  row["haul_gbps"] = gbps(haul);
  row["memcpy_gbps"] = gbps(memcpy);
  put_ratio(row, "speedup", ratio_of(memcpy, haul));
  row["haul_ns"] = round1(median(haul));
  row["memcpy_ns"] = round1(median(memcpy));
  end_row(row, findings.mover, haul.size());
  return row;
}

void run_bandwidth(SuiteRun& session, std::vector<Row>& rows) {
  run_measurement(session, rows, bandwidth_measurement, all_cases(session));
}

constexpr auto bandwidth_columns =
    columns_of(column::placement, column::cache, column::size,
               Column{"window", "window", Unit::count}, column::scheme, column::haul_gbps,
               column::memcpy_gbps, column::speedup, column::speedup_q25, column::speedup_q75);

}  // namespace

const CopyMeasurement bandwidth_measurement{"bandwidth", measure_bandwidth, bandwidth_row};

const Suite bandwidth_suite{"bandwidth",   "eight pieces in flight, against one memcpy",
                            run_bandwidth, bandwidth_columns,
                            true,          nullptr,
                            true};

}  // namespace haul::bench
