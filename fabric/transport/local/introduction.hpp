// What endpoints of a node say to each other over their sockets: packets that begin with a word
// which says what they are. Each is hostile input until its fields are checked.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/os/descriptor.hpp"
#include "fabric/protocol/address.hpp"
#include "fabric/transport/monitor.hpp"

namespace haul::fabric {

enum class SocketWord : std::uint32_t {
  connect = static_cast<std::uint32_t>(Greeting::connect),  // Introduction
  monitor = static_cast<std::uint32_t>(Greeting::monitor),  // nothing more
  arena = 0x31414648,                                       // ArenaNews
  bell = 0x31424648,                                        // nothing more: wake up
  end = 0x31454648,                                         // nothing more: good-bye
};

// The sender's arena (haul_alloc); its descriptor travels with it.
struct ArenaNote {
  std::uint64_t bytes = 0;                          // 0: there is none (yet)
  std::uint64_t probe_offset = 0, probe_value = 0;  // the word at that offset, for the probe
};

// One direction begins: descriptors are the segment's and, where arena.bytes is not 0, the arena's.
struct Introduction {
  static constexpr std::uint32_t current_version = 1;
  SocketWord word = SocketWord::connect;
  std::uint32_t version = current_version;
  std::uint64_t segment_bytes = 0;
  Address from;
  std::uint64_t probe_address = 0, probe_value = 0;  // a word of the sender's private memory
  ArenaNote arena;
};

// The arena was made after the Introduction.
struct ArenaNews {
  SocketWord word = SocketWord::arena;
  std::uint32_t reserved = 0;
  ArenaNote arena;
};

// The longest packet except a MonitorReply.
inline constexpr std::size_t packet_bytes = sizeof(Introduction);

// The probe words of this process.
std::uint64_t probe_word_address() noexcept;
std::uint64_t probe_word_value() noexcept;

// The note and descriptor of this process's arena, if it has one. The first call puts the probe
// word there, and so may take the arena's lock: it must not be made under the control thread's
// lock.
struct OwnArena {
  os::Descriptor descriptor;
  ArenaNote note;
};
OwnArena own_arena() noexcept;

}  // namespace haul::fabric
