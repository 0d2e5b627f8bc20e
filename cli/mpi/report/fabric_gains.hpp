// What large messages took, by size and path, and what they would have taken through the ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/transport/monitor.hpp"

namespace haul::cli {

// By this machine's stored calibration. Whoever has none gets the defaults' figures, and `measured`
// false: nothing is to be concluded from them.
struct RingPrice {
  bool measured = false;
  double asking_ns = 0, line_ns = 0;

  static RingPrice of_this_machine();
  double of(double bytes) const { return asking_ns + bytes / 64 * line_ns; }
};

// Messages of one size class that took one path, of all endpoints.
struct LargeRow {
  std::size_t size_class = 0;
  fabric::Path path = fabric::Path::ring;
  std::uint64_t messages = 0, bytes = 0;
  double typical_ns = 0;  // the median, for a message of the mean size; 0: none was timed
  double ring_ns = 0;     // estimated, the same by the ring
  // Of all of them; 0 where the path is the ring, another node's, or was not timed.
  double gained_ns = 0;
};

struct LargeSums {
  std::vector<LargeRow> rows;  // by size, then path; none without messages
  std::uint64_t messages = 0;
  std::uint64_t aside = 0;  // arrived while the program made no call
  double direct_ns = 0;     // of those that were mapped or copied by the kernel
  double direct_ring_ns = 0;
  double ring_ns = 0, ring_estimated_ns = 0;  // of those that came through the ring
  // How many times the estimate messages took that did come through the ring, or, where none did,
  // the others. Well above 1 it says that the calibration does not fit this run.
  double above_estimate() const;
};
LargeSums sum_large(const std::vector<const fabric::MonitorReply*>& replies, const RingPrice& ring);

}  // namespace haul::cli
