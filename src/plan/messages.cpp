#include "plan/messages.hpp"
#include "base/machine/pages.hpp"

#include <algorithm>
#include <bit>

namespace haul::plan {
namespace {

constexpr double line_bytes = 64;
using os::page_bytes;

}  // namespace

std::size_t eager_bytes(const Calibration& figures) noexcept {
  constexpr double least_line_ns = 0.01;
  const double round_trip_ns = ring_cost(figures).asking_ns;
  // The message was written a moment ago, so some of it is still in one of the receiver's caches.
  // And three quarters of what the other copy takes are saved again, since parts are copied out
  // while the next come in.
  const double line_ns =
      std::max((figures.hot_line_ns + figures.l3_line_ns) / 2 / 4, least_line_ns);
  const double bytes = line_bytes * round_trip_ns / line_ns;
  // (A figure that is NaN makes the least of it.)
  if (!(bytes > least_eager_bytes)) return least_eager_bytes;
  if (bytes >= most_eager_bytes) return most_eager_bytes;
  return std::bit_floor(static_cast<std::size_t>(bytes));
}

RingCost ring_cost(const Calibration& figures) noexcept {
  // What asking costs beyond the transfer of lines: two packets to write, to poll for and to match,
  // and the first piece, which nobody copies out while it comes in.
  constexpr double handling_ns = 1500;
  // The sender's core copies a piece in while the receiver's copies the one before out of it, and
  // has to fetch each line from the other core for that. (5.6 GB/s on a Xeon, Sapphire Rapids, 6.0
  // measured; 51 on an EPYC, Zen 5, 50 measured.)
  return {std::max(figures.round_trip_ns, 0.0) + handling_ns,
          figures.l3_line_ns + figures.remote_line_ns};
}

RingCost ring_cost(const Calibration& figures, const HaulPrivateRing& ring) noexcept {
  // The longest two were asked for, and left in pieces.
  constexpr unsigned longer = HaulPrivateRing::size_count - 1, shorter = longer - 1;
  const double line_ns =
      (ring.message_ns[longer] - ring.message_ns[shorter]) * line_bytes /
      static_cast<double>(HaulPrivateRing::bytes_of(longer) - HaulPrivateRing::bytes_of(shorter));
  if (ring.measured_at_s == 0 || !(line_ns > 0)) return ring_cost(figures);
  const double lines = static_cast<double>(HaulPrivateRing::bytes_of(shorter)) / line_bytes;
  return {std::max(ring.message_ns[shorter] - lines * line_ns, 0.0), line_ns};
}

KernelBytes kernel_bytes(const Calibration& figures, std::size_t l2_bytes) noexcept {
  constexpr std::size_t usual_l2_bytes = std::size_t{1} << 20;
  const std::size_t own_cache = l2_bytes != 0 ? l2_bytes : usual_l2_bytes;
  // What was measured is a message that lies in a core's own cache. A longer one that is copied
  // twice passes the cells as well as two buffers through the shared cache, one that goes to new
  // pages has them filled while its sender waits, and these figures do not tell which way is
  // sooner. (A Zen 3, L2 of 512 KiB, by whose figures the kernel never is; time of the kernel's
  // copy over the usual way's, near, buffers reused and rewritten: 1 MiB 1.3 and 1.0, 2 MiB 0.8 and
  // 0.8, 4 MiB 0.6 and 0.8; rewritten 512 KiB 1.5; new buffers, far, 0.6 to 0.7 from 512 KiB on.)
  const KernelBytes beyond{own_cache, 4 * own_cache};
  const double ring_line_ns = ring_cost(figures).line_ns;
  const double saved_ns = ring_line_ns - figures.kernel_line_ns / 2;
  // NaN saves nothing. (A Zen 5: 1.3 - 4.2 / 2. The Xeon: 10.6 - 12.5 / 2.)
  if (!(saved_ns > 0)) return beyond;
  const double bytes = line_bytes * std::max(figures.kernel_call_ns, 0.0) / saved_ns;
  if (!(bytes < static_cast<double>(beyond.try_from))) return beyond;
  // While a buffer and its copy fit in a core's own cache, copies through shared memory leave them
  // there, and one by the kernel takes their lines to the other core, which costs the thread that
  // writes the buffer again or reads what has come. (The Xeon, L2 of 2 MiB, time of the kernel's
  // copy over the ring's: 512 KiB, buffers rewritten 1.2, fresh 1.5; 1 MiB, 0.94 and 1.0.)
  const std::size_t pages = (static_cast<std::size_t>(bytes) + page_bytes - 1) / page_bytes;
  return {pages * page_bytes, std::max(pages * page_bytes, own_cache / 2)};
}

std::size_t stream_from_bytes(std::size_t l3_bytes) noexcept {
  // Two ranks that exchange messages of a quarter have four buffers of it. (A Zen 3, 32 MiB, time
  // of such copies over that of usual ones, of buffers reused, rewritten, off-cache: 4
  // MiB 1.5, 1.05 and 0.56; 8 MiB 0.65, 0.92 and 0.6; 1 MiB 2.3, 2.6 and 0.5.)
  return l3_bytes != 0 ? l3_bytes / 4 : SIZE_MAX;
}

Rings rings_by(const Calibration& figures, const Rings& measured,
               const WantedRing& wanted) noexcept {
  Rings rings = measured;
  if (rings.near.measured_at_s == 0) rings.near = measured.far;
  if (rings.far.measured_at_s == 0) rings.far = measured.near;
  for (HaulPrivateRing* ring : {&rings.near, &rings.far}) {
    if (ring->measured_at_s == 0) ring->eager_bytes = eager_bytes(figures);
    if (wanted.eager_bytes != SIZE_MAX) ring->eager_bytes = wanted.eager_bytes;
    if (wanted.part_bytes != SIZE_MAX) ring->part_bytes = wanted.part_bytes;
    if (wanted.cell_from_bytes != SIZE_MAX) ring->cell_from_bytes = wanted.cell_from_bytes;
    if (wanted.piece_bytes != SIZE_MAX) ring->piece_bytes = wanted.piece_bytes;
    ring->owns_ahead = wanted.owns_ahead.value_or(ring->owns_ahead);
    ring->demotes = wanted.demotes.value_or(ring->demotes);
    ring->copies_in = wanted.copies_in.value_or(ring->copies_in);
    ring->copies_out = wanted.copies_out.value_or(ring->copies_out);
  }
  return rings;
}

}  // namespace haul::plan
