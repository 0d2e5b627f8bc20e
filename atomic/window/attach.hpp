// What another process of this host may ask a node for: it connects to the node's abstract socket,
// shows a window's key, and is given that window's memory, or the node's counters.
#pragma once

#include <haul/atomic.h>

#include <cstdint>

#include "base/error.hpp"

namespace haul::atomics {

struct AttachRequest {
  static constexpr std::uint64_t magic_value = 0x3168637474616c68;  // "hlattch1"
  std::uint64_t magic = magic_value;
  std::uint64_t key = 0;
  std::uint32_t window = 0;
  enum class What : std::uint32_t { memory = 1, counters = 2 } what = What::memory;
};
struct AttachReply {
  static constexpr unsigned most_counters = 32;
  std::int32_t code = 0;  // a haul::Code; 0: with a descriptor if memory was asked for
  std::uint32_t counters = 0;
  std::uint64_t bytes = 0, address = 0;
  std::uint64_t counter[most_counters] = {};
};

inline constexpr std::size_t attach_name_bytes = 100;
// The abstract socket of the node that has this host and port.
void attach_socket_name(const haul_atomic_window_name& name,
                        char (&text)[attach_name_bytes]) noexcept;

// Whether the other end of this socket is a process of the own user, or of root. Only such
// processes give each other keys and memory.
bool is_trusted_peer(int socket) noexcept;

// Both ask only processes of the own user or of root, and block for up to a second.
// The counters of a window's node.
Expected<AttachReply> fetch_counters(const haul_atomic_window_name& name) noexcept;
// A window's descriptor; *name becomes what the owner knows it by.
Expected<int> fetch_window(haul_atomic_window_name* name) noexcept;

}  // namespace haul::atomics
