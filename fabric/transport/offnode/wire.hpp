// What endpoints of different nodes say to each other: messages on the link, and what precedes each
// packet. What comes from a peer is hostile input.
#pragma once

#include <cstdint>

#include "base/net/inet.hpp"
#include "fabric/protocol/address.hpp"
#include "fabric/protocol/packet.hpp"

namespace haul::fabric {

// ---- Address.offnode ----
// Where an endpoint listens: a port, then addresses of its node, IPv4 or IPv6.
struct OffnodePlaces {
  static constexpr unsigned capacity = 7;
  std::uint16_t port = 0;
  unsigned count = 0;
  os::InetAddress addresses[capacity];
};
// As many addresses as fit, in their order.
void write_places(const OffnodePlaces& places, Address* address) noexcept;
// False if it names none.
bool read_places(const Address& address, OffnodePlaces* places) noexcept;

// ---- the link ----
struct LinkMessage {
  static constexpr std::uint32_t expected_magic = 0x4b4e4c48;  // "HLNK"
  static constexpr std::uint16_t expected_version = 1;
  enum class Kind : std::uint16_t {
    offer = 1,  // from the connecting side: its name, the name it looks for, and the providers that
                // it can open
    answer,     // the provider that I have opened, and my name in it; or status
    bye,        // the last one: I have sent you `packets`; status 0: my endpoint closes, else it
                // stays, but has no use for you any more
  };
  std::uint32_t magic = expected_magic;
  std::uint16_t version = expected_version;
  Kind kind = Kind::offer;
  std::uint32_t status = 0;  // answer, bye: 0 or an FI_E* error
  std::uint32_t name_bytes = 0;
  Address from;
  std::uint64_t to[2] = {0, 0};
  std::uint64_t packets = 0;
  char providers[128] = {};  // offer: names, each ended by NUL, the best first; answer: one
  std::uint8_t name[128] = {};
  bool valid() const noexcept;
};
static_assert(sizeof(LinkMessage) == 360);

// ---- packets ----
// Stands before each packet's header: the sender and the packet's number, by which a lost or
// foreign packet is noticed.
struct OffnodePrefix {
  std::uint64_t id[2];
  std::uint64_t number;
};
static_assert(sizeof(OffnodePrefix) == 24);
// What stands before a packet's payload.
inline constexpr std::size_t head_bytes = sizeof(OffnodePrefix) + sizeof(Header);

}  // namespace haul::fabric
