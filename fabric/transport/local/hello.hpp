// What endpoints of a node say to each other over their sockets: packets that begin with a word
// which says what they are. Each is hostile input until its fields are checked.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/descriptor.hpp"
#include "fabric/protocol/address.hpp"
#include "fabric/transport/monitor.hpp"

namespace haul::fabric {

enum class Word : std::uint32_t {
  connect = static_cast<std::uint32_t>(Greeting::connect),  // Hello
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
struct Hello {
  static constexpr std::uint32_t current_version = 1;
  Word word = Word::connect;
  std::uint32_t version = current_version;
  std::uint64_t segment_bytes = 0;
  Address from;
  std::uint64_t probe_address = 0, probe_value = 0;  // a word of the sender's private memory
  ArenaNote arena;
};

// The arena was made after the Hello.
struct ArenaNews {
  Word word = Word::arena;
  std::uint32_t reserved = 0;
  ArenaNote arena;
};

// What has to be read to know any packet but a MonitorReply.
inline constexpr std::size_t packet_bytes = sizeof(Hello);

// Whether two processes see each other's sockets: a hash of the kernel's boot id and of the network
// namespace. The same for as long as the process stays in its namespace.
std::uint64_t host_identity() noexcept;

// A new endpoint's: random id, this host. False if the kernel has no random numbers.
bool make_address(Address* address) noexcept;

// The endpoint of this host that a port names, which programs may agree on beforehand. It is
// reached within its node only: whoever looks it up by its port knows none of its places. Port 0:
// an address of this host that names no endpoint, for who opens one to choose.
Address address_of_port(std::uint16_t port) noexcept;
bool names_an_endpoint(const Address& address) noexcept;

// The name of an endpoint's socket.
inline constexpr std::size_t name_bytes = 80;
void socket_name(const Address& address, char (&name)[name_bytes]) noexcept;

// The probe words of this process.
std::uint64_t probe_word_address() noexcept;
std::uint64_t probe_word_value() noexcept;

// The arena's note and descriptor, if there is one. Puts the probe's word there the first time, and
// so may take the arena's lock: not to be called under the control thread's.
struct OwnArena {
  os::Descriptor descriptor;
  ArenaNote note;
};
OwnArena own_arena() noexcept;

}  // namespace haul::fabric
