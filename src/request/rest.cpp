#include "request/rest.hpp"

#include <utility>

#include "base/os/os.hpp"
#include "request/rings.hpp"
#include "request/sharing.hpp"

namespace haul {
namespace {

constexpr std::uint32_t none = RingSet::none;

// Under the rings' lock: the rings at rest that keep their pages; `none` marks a free place.
constinit std::uint32_t warm[warm_rings] = {none, none, none, none};

void give_back_pages(Ring& ring) noexcept {
  // Before the pages go: the thread that wakes the ring fills in what they held.
  ring.emptied.store(true, std::memory_order_relaxed);
  if (ring_is_shared(ring.index)) {
    remove_shared_pages(ring.index, ring.body_bytes());
  } else {
    os::drop_pages(&ring, ring.body_bytes());
  }
}

}  // namespace

void rest_ring(Ring& ring) noexcept {
  ring.import_failures();
  ring.completions.abandon();
  ring.publishing.store(false, std::memory_order_relaxed);
  show_shared_ring(ring.index, false);
  rings_in_use.remove(ring.index);
  // The highest gives its pages back. (A free place counts as higher than any.)
  std::uint32_t highest = ring.index;
  for (std::uint32_t& place : warm) {
    if (place > highest) std::swap(place, highest);
  }
  if (highest != none) give_back_pages(ring_table.ring(highest));
}

Ring* wake_ring() noexcept {
  std::uint32_t* lowest = &warm[0];
  for (std::uint32_t& place : warm) {
    if (place < *lowest) lowest = &place;
  }
  std::uint32_t index = std::exchange(*lowest, none);
  if (index == none)
    index = rings_in_use.lowest_outside(ring_table.count.load(std::memory_order_relaxed));
  if (index == none) return nullptr;
  Ring& ring = ring_table.ring(index);
  if (ring.emptied.load(std::memory_order_relaxed)) {
    ring.fill_in_ended();
    ring.emptied.store(false, std::memory_order_relaxed);
  }
  ring.adopt();
  rings_in_use.add(index);
  show_shared_ring(index, true);
  return &ring;
}

void forget_resting() noexcept {
  for (std::uint32_t& place : warm) place = none;
}

}  // namespace haul
