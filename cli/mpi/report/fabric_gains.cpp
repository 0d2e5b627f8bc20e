#include "cli/mpi/report/fabric_gains.hpp"

#include <array>
#include <numeric>

#include "base/private.hpp"

namespace haul::cli {
namespace {

using fabric::Path;

struct CellSum {
  std::uint64_t messages = 0, bytes = 0;
  std::array<double, fabric::pace_buckets> paces{};

  void add(const fabric::LargeCounts& counts) {
    messages += counts.messages;
    bytes += counts.bytes;
    for (std::size_t i = 0; i < paces.size(); ++i) paces[i] += counts.paces[i];
  }
  // In ns a byte; 0: none was timed.
  double median_pace() const {
    const double half = std::accumulate(paces.begin(), paces.end(), 0.0) / 2;
    double below = 0;
    for (std::size_t i = 0; half > 0 && i < paces.size(); ++i)
      if ((below += paces[i]) >= half) return fabric::pace_of(i);
    return 0;
  }
};

LargeRow row_of(std::size_t size_class, Path path, const CellSum& sum, const RingPrice& ring) {
  LargeRow row;
  row.size_class = size_class;
  row.path = path;
  row.messages = sum.messages;
  row.bytes = sum.bytes;
  const auto messages = static_cast<double>(sum.messages);
  const double mean_bytes = static_cast<double>(sum.bytes) / messages;
  row.typical_ns = sum.median_pace() * mean_bytes;
  row.ring_ns = ring.of(mean_bytes);
  const bool direct = path == Path::mapped || path == Path::cma;
  if (direct && row.typical_ns > 0) row.gained_ns = (row.ring_ns - row.typical_ns) * messages;
  return row;
}

}  // namespace

double LargeSums::above_estimate() const {
  if (ring_estimated_ns > 0) return ring_ns / ring_estimated_ns;
  return direct_ring_ns > 0 ? direct_ns / direct_ring_ns : 1;
}

RingPrice RingPrice::of_this_machine() {
  HaulPrivateMessageLimits limits;
  haul_private_message_limits(&limits);
  return {limits.measured, limits.ring_asking_ns, limits.ring_line_ns};
}

LargeSums sum_large(const std::vector<const fabric::MonitorReply*>& replies,
                    const RingPrice& ring) {
  LargeSums sums;
  for (const fabric::MonitorReply* reply : replies) sums.aside += reply->large_aside;
  for (std::size_t size = 0; size < fabric::large_classes; ++size) {
    for (std::size_t path = 0; path < fabric::path_count; ++path) {
      CellSum cell;
      for (const fabric::MonitorReply* reply : replies) cell.add(reply->large[size][path]);
      if (cell.messages == 0) continue;
      const LargeRow row = row_of(size, static_cast<Path>(path), cell, ring);
      sums.rows.push_back(row);
      sums.messages += row.messages;
      if (row.path == Path::ring) {
        sums.ring_ns += row.typical_ns * static_cast<double>(row.messages);
        sums.ring_estimated_ns += row.ring_ns * static_cast<double>(row.messages);
      }
      if (row.gained_ns == 0) continue;
      sums.direct_ns += row.typical_ns * static_cast<double>(row.messages);
      sums.direct_ring_ns += row.ring_ns * static_cast<double>(row.messages);
    }
  }
  return sums;
}

}  // namespace haul::cli
