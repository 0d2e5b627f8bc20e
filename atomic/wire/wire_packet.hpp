// A packet in memory of the process.
#pragma once

#include <cstddef>

#include "atomic/wire/packet.h"

namespace haul::atomics {

struct alignas(64) WirePacket {
  wire_header header;
  wire_operation operations[WIRE_MAX_OPERATIONS];
};
inline constexpr std::size_t header_bytes = sizeof(wire_header);
static_assert(header_bytes == 48 && sizeof(wire_operation) == 32);

inline std::size_t packet_bytes(const WirePacket& packet) noexcept {
  return header_bytes + packet.header.count * sizeof(wire_operation);
}

// Puts the checksum in.
void seal(WirePacket* packet) noexcept;
// Is this a whole packet of ours, undamaged?
bool intact(const WirePacket& packet, std::size_t bytes) noexcept;

}  // namespace haul::atomics
