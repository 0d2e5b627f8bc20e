// How `haul top` and `haul run --report` ask a running process for its counters: a packet to the
// abstract SEQPACKET socket of any of its endpoints, which the control thread answers. The names of
// those sockets begin with socket_prefix and stand in /proc/net/unix. No user is named there: the
// same one has another number in another user namespace.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/protocol/statistics.hpp"

namespace haul::fabric {

// "haul-fabric.<32 hex digits>", without the leading NUL.
inline constexpr char socket_prefix[] = "haul-fabric.";

// First bytes of whatever is sent to such a socket.
enum class Greeting : std::uint32_t { connect = 0x31434648, monitor = 0x314d4648 };

// The answer to Greeting::monitor: one packet, of one endpoint.
struct MonitorReply {
  std::uint32_t magic = static_cast<std::uint32_t>(Greeting::monitor);
  std::uint32_t version = 1;
  std::int32_t pid = 0;
  std::uint32_t peers = 0;
  std::uint64_t uptime_ns = 0;
  std::uint64_t sent_messages[path_count] = {}, sent_bytes[path_count] = {};
  std::uint64_t received_messages = 0, received_bytes = 0;
  std::uint64_t sizes[Statistics::size_buckets] = {};
  std::uint64_t unexpected_messages = 0, unexpected_bytes = 0;
  std::uint64_t copies_in_flight = 0, fallbacks = 0;
  std::uint64_t rma_operations = 0, atomic_operations = 0;
  std::uint32_t peer_count = 0;  // of `peer`, at most peer_capacity
  std::uint32_t reserved = 0;
  static constexpr std::size_t peer_capacity = 64;
  struct PeerPaths {
    std::int32_t pid = 0;                                     // -1: off-node or unknown
    std::uint8_t ring = 0, mapped = 0, cma = 0, offnode = 0;  // 1: usable
    char why[120] = {};  // what is missing and why, "" if nothing is
  } peer[peer_capacity] = {};
};

}  // namespace haul::fabric
