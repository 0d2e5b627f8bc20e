// How `haul top` and `haul run --report` ask a running process for its counters: a packet to the
// abstract SEQPACKET socket of any of its endpoints, which the control thread answers. The names of
// those sockets begin with socket_prefix and stand in /proc/net/unix. No user is named there: the
// same one has another number in another user namespace.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/transport/observation.hpp"

namespace haul::fabric {

// "haul-fabric.<32 hex digits>", without the leading NUL.
inline constexpr char socket_prefix[] = "haul-fabric.";

// First bytes of whatever is sent to such a socket.
enum class Greeting : std::uint32_t { connect = 0x31434648, monitor = 0x314d4648 };

// The answer to Greeting::monitor: one packet, of one endpoint. Who reads it compares the version
// and the length before anything else; another version is never guessed at.
struct MonitorReply {
  std::uint32_t magic = static_cast<std::uint32_t>(Greeting::monitor);
  std::uint32_t version = 2;
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
  std::int32_t rank = -1;        // as the launcher has told the process
  static constexpr std::size_t peer_capacity = 64;
  struct PeerPaths {
    std::int32_t pid = 0;                                     // -1: off-node or unknown
    std::uint8_t ring = 0, mapped = 0, cma = 0, offnode = 0;  // 1: usable
    char why[120] = {};  // what is missing and why, "" if nothing is
  } peer[peer_capacity] = {};

  // Only of an endpoint that reports to a collector; zeroes else.
  LargeCounts large[large_classes][path_count] = {};
  std::uint64_t large_aside = 0;  // of them arrived while the program made no call
  static constexpr std::size_t slow_capacity = 8;
  std::uint32_t slow_count = 0;         // of `slow`, at most slow_capacity
  std::uint32_t last = 0;               // 1: the endpoint closes, nothing follows
  SlowBuffer slow[slow_capacity] = {};  // the worst first
  SlowBuffer slow_others;               // the rest, together
};

}  // namespace haul::fabric
