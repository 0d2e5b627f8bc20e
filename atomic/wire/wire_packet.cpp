#include "atomic/wire/wire_packet.hpp"

#include "atomic/wire/checksum.h"

namespace haul::atomics {

namespace {

__u64 checksum_of(const WirePacket& packet) noexcept {
  return wire_checksum(&packet, &packet + 1, packet.header.count);
}

}  // namespace

void seal(WirePacket* packet) noexcept {
  packet->header.checksum = checksum_of(*packet);
}

bool intact(const WirePacket& packet, std::size_t bytes) noexcept {
  return bytes >= header_bytes && packet.header.magic == WIRE_MAGIC &&
         packet.header.count <= WIRE_MAX_OPERATIONS && bytes == packet_bytes(packet) &&
         packet.header.checksum == checksum_of(packet);
}

}  // namespace haul::atomics
