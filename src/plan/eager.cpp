// Where asking and copying once more cost the same.
#include "plan/eager.hpp"

#include <algorithm>
#include <bit>

namespace haul::plan {

std::size_t eager_bytes(const Calibration& figures) noexcept {
  // What the two packets of a round trip cost beside the lines' way: matching, writing, polling.
  constexpr double handling_ns = 700;
  constexpr double line_bytes = 64, least_line_ns = 0.01;
  const double round_trip_ns = std::max(figures.round_trip_ns, 0.0) + handling_ns;
  // The message was written a moment ago: some of it is still in a cache of the receiver's own. And
  // half of what the other copy takes is saved again: packets are copied out while the next come
  // in, and a piece that was asked for is not. (16 KiB, a Xeon: 2.5 us more if asked for, where the
  // round trip accounts for 1.1.)
  const double line_ns =
      std::max((figures.hot_line_ns + figures.l3_line_ns) / 2 / 2, least_line_ns);
  const double bytes = line_bytes * round_trip_ns / line_ns;
  const double most = most_eager_bytes;
  return std::clamp(std::bit_floor(static_cast<std::size_t>(std::min(bytes, most))),
                    least_eager_bytes, most_eager_bytes);
}

}  // namespace haul::plan
