// How an endpoint is named: 64 bytes, exchanged by the program (fi_getname, fi_av_insert).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace haul::fabric {

struct Address {
  static constexpr std::uint32_t expected_magic = 0x4c554148;  // "HAUL"
  static constexpr std::uint8_t expected_version = 1;
  static constexpr std::size_t offnode_capacity = 32;

  std::uint32_t magic = expected_magic;
  std::uint8_t version = expected_version;
  std::uint8_t offnode_bytes = 0;  // of offnode[]; 0: reachable within its node only
  std::uint16_t reserved = 0;
  // Of the kernel's boot id and the network namespace: two endpoints with the same value reach each
  // other by an abstract Unix socket.
  std::uint64_t host = 0;
  std::uint64_t id[2] = {0, 0};                 // random; names the socket
  std::uint8_t offnode[offnode_capacity] = {};  // where other nodes reach it (offnode/wire.hpp)

  bool operator==(const Address& other) const noexcept {
    return std::memcmp(this, &other, sizeof other) == 0;
  }
  bool valid() const noexcept {
    return magic == expected_magic && version == expected_version &&
           offnode_bytes <= offnode_capacity;
  }
  std::uint64_t hash() const noexcept { return id[0] ^ (id[1] * 0x9e3779b97f4a7c15u); }
};
static_assert(sizeof(Address) == 64);

}  // namespace haul::fabric
