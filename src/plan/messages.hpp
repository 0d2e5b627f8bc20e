// The lengths from which on a message takes one way or the other between two processes of one
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/private.hpp"
#include "plan/calibration.hpp"

namespace haul::plan {

inline constexpr std::size_t least_eager_bytes = std::size_t{4} << 10;  // paper 001's limit
inline constexpr std::size_t most_eager_bytes = std::size_t{64} << 10;

// Asking first costs a round trip of packets; not asking costs another copy, if nobody waits for
// the message. This is the length at which they cost the same, rounded down to a power of two,
// within the limits above. (A Xeon took 16.3 us for 64 KiB asked for, 13.8 unasked; 128 KiB that
// nobody writes are copied once by the kernel in two thirds of the time that they take unasked.)
std::size_t eager_bytes(const Calibration& figures) noexcept;

// What a message takes that goes through the ring's cells, since its sender was asked: this, and
// each of its lines that.
struct RingCost {
  double asking_ns = 0, line_ns = 0;
};
RingCost ring_cost(const Calibration& figures) noexcept;
// The same by a ring that was measured; what ring_cost() says where it was not.
RingCost ring_cost(const Calibration& figures, const HaulPrivateRing& ring) noexcept;

// From which length on, in whole pages, one copy of small pages by the kernel, half of it by each
// side, may take less time than two copies through shared memory, which both sides make at once;
// and from which it mostly does. `l2_bytes`: of a core; 0 if unknown.
struct KernelBytes {
  std::size_t try_from = SIZE_MAX, from = SIZE_MAX;
};
KernelBytes kernel_bytes(const Calibration& figures, std::size_t l2_bytes) noexcept;

// From which length on the destination of a message that is copied in user space is written past
// the caches. SIZE_MAX: never. `l3_bytes`: the last-level cache; 0 if unknown.
std::size_t stream_from_bytes(std::size_t l3_bytes) noexcept;

// How rings are written, to a peer whose core shares the last-level cache with this one, and to
// others.
struct Rings {
  HaulPrivateRing near, far;
};
// What the user has decided; SIZE_MAX or nothing: not.
struct WantedRing {
  std::size_t eager_bytes = SIZE_MAX, part_bytes = SIZE_MAX, cell_from_bytes = SIZE_MAX,
              piece_bytes = SIZE_MAX;
  std::optional<bool> owns_ahead, demotes;
  std::optional<HaulPrivateCopy> copies_in, copies_out;
};
// As measured; where only one of the two was, it is taken for both, and where none was, usual
// figures and the limit of eager_bytes(). What is wanted goes before.
Rings rings_by(const Calibration& figures, const Rings& measured,
               const WantedRing& wanted) noexcept;

}  // namespace haul::plan
