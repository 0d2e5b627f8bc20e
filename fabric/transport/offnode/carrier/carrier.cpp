// Buffers of a carrier.
#include "fabric/transport/offnode/carrier/carrier.hpp"

#include <rdma/fi_errno.h>

#include <new>

#include "base/os/os.hpp"

namespace haul::fabric {

namespace {

constexpr std::size_t small_bytes = 256;
constexpr std::size_t small_count = 256, large_count = 64;  // of a slab

}  // namespace

OffnodeCarrier::~OffnodeCarrier() {
  for (const Slab& slab : slabs_) os::unmap(slab.memory, slab.bytes);
}

int OffnodeCarrier::lend(void*, std::size_t, std::uint64_t*, std::uint32_t*) noexcept {
  return -FI_EOPNOTSUPP;
}

int OffnodeCarrier::read(Reading&, const iovec*, std::size_t, fi_addr_t, std::uint64_t,
                         std::uint32_t) noexcept {
  return -FI_EOPNOTSUPP;
}

bool OffnodeCarrier::map(std::size_t bytes, Slab* slab) noexcept {
  slab->memory = static_cast<std::byte*>(os::map_anonymous(bytes));
  slab->bytes = bytes;
  if (slab->memory == nullptr) return false;
  if (register_slab(*slab)) return true;
  os::unmap(slab->memory, bytes);
  return false;
}

bool OffnodeCarrier::make_departures(std::size_t capacity, std::size_t count,
                                     Departure** free_list) noexcept {
  const std::size_t stride = Departure::headroom + capacity;
  std::unique_ptr<Departure[]> departures(new (std::nothrow) Departure[count]);
  Slab slab;
  if (!departures || !map(stride * count, &slab)) return false;
  for (std::size_t i = 0; i < count; ++i) {
    Departure& departure = departures[i];
    departure.kind = CarrierOperation::Kind::departure;
    departure.data = slab.memory + i * stride + Departure::headroom;
    departure.capacity = static_cast<std::uint32_t>(capacity);
    departure.descriptor = slab.descriptor;
    departure.next = *free_list;
    *free_list = &departure;
  }
  slab.departures = std::move(departures);
  slabs_.push_back(std::move(slab));
  return true;
}

Departure* OffnodeCarrier::take(std::size_t bytes) noexcept {
  const bool small = bytes <= small_bytes;
  Departure*& free_list = small ? free_small_ : free_large_;
  if (free_list == nullptr && !make_departures(small ? small_bytes : packet_bytes,
                                               small ? small_count : large_count, &free_list)) {
    return nullptr;
  }
  Departure* departure = free_list;
  free_list = departure->next;
  departure->next = nullptr;
  departure->bytes = static_cast<std::uint32_t>(bytes);
  return departure;
}

void OffnodeCarrier::give(Departure& departure) noexcept {
  Departure*& free_list = departure.capacity == small_bytes ? free_small_ : free_large_;
  departure.peer = nullptr;
  departure.next = free_list;
  free_list = &departure;
}

}  // namespace haul::fabric
