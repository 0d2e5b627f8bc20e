// How places are packed into an address, and what a sound link message is.
#include "fabric/transport/offnode/wire.hpp"

#include <cstring>

namespace haul::fabric {

namespace {

// offnode[]: the port, how many of the addresses are IPv4, those, and IPv6 ones in what is left.
constexpr std::size_t places_begin = sizeof(std::uint16_t) + 1;
constexpr std::size_t four_bytes = 4, six_bytes = 16;

}  // namespace

void write_places(const OffnodePlaces& places, Address* address) noexcept {
  std::size_t used = places_begin;
  std::uint8_t fours = 0;
  std::memset(address->offnode, 0, sizeof address->offnode);
  std::memcpy(address->offnode, &places.port, sizeof places.port);
  const auto add = [&](const os::InetAddress& place, std::size_t bytes) noexcept {
    if (used + bytes > Address::offnode_capacity) return false;
    std::memcpy(address->offnode + used, place.bytes, bytes);
    used += bytes;
    return true;
  };
  for (unsigned i = 0; i < places.count; ++i) {
    if (!places.addresses[i].six && add(places.addresses[i], four_bytes)) ++fours;
  }
  for (unsigned i = 0; i < places.count; ++i) {
    if (places.addresses[i].six) add(places.addresses[i], six_bytes);
  }
  address->offnode[sizeof places.port] = fours;
  address->offnode_bytes = static_cast<std::uint8_t>(used > places_begin ? used : 0);
}

bool read_places(const Address& address, OffnodePlaces* places) noexcept {
  *places = {};
  const std::size_t end = address.offnode_bytes;
  if (end <= places_begin || end > Address::offnode_capacity) return false;
  std::memcpy(&places->port, address.offnode, sizeof places->port);
  unsigned fours = address.offnode[sizeof places->port];
  for (std::size_t at = places_begin; places->count < OffnodePlaces::capacity;) {
    const std::size_t bytes = fours != 0 ? four_bytes : six_bytes;
    if (at + bytes > end) break;
    os::InetAddress& place = places->addresses[places->count++];
    std::memcpy(place.bytes, address.offnode + at, bytes);
    place.six = fours == 0;
    if (fours != 0) --fours;
    at += bytes;
  }
  return places->port != 0 && places->count != 0;
}

bool LinkMessage::valid() const noexcept {
  return magic == expected_magic && version == expected_version && kind >= Kind::offer &&
         kind <= Kind::bye && name_bytes <= sizeof name && from.valid() &&
         providers[sizeof providers - 1] == '\0' && providers[sizeof providers - 2] == '\0';
}

}  // namespace haul::fabric
