// What this process and the node's service say to each other while the link is made.
#pragma once

#include <cstddef>
#include <cstring>

#include "base/error.hpp"
#include "base/os/descriptor.hpp"
#include "memory/arena.hpp"
#include "request/sharing.hpp"
#include "request/wire.hpp"

namespace haul {

// Connects this socket to a service of our own user at one of the places, from the place-th on. 0,
// or -errno; -EKEYREJECTED for a process of mixed rights (base/os/rights.hpp), which shares its
// rings with nobody, since another user could then write the pointers in them. -EPERM: another
// user's service listens; *place is then the next place, for which the caller needs another socket,
// this one being connected. Blocks for as long as a file system does; the link's thread only.
int connect_to_service(const os::Descriptor& socket, unsigned* place) noexcept;

// Says hello, hands the rings and the arena over, and waits (2 s at most) for the answer. *arena:
// the arena that was handed over.
Expected<wire::Welcome> greet_service(int fd, const SharedTable& table, ArenaView* arena) noexcept;

union ServiceMessage {
  wire::MessageKind kind;
  char bytes[wire::max_message_bytes];
};

// One packet, *bytes of it. closed: by the other side; trouble: this one cannot be read.
enum class Received : std::uint8_t { nothing, message, closed, trouble };
Received receive_from_service(int fd, ServiceMessage* message, std::size_t* bytes) noexcept;

// Is it a T? Then *to is it.
template <class T>
bool read_as(const ServiceMessage& message, std::size_t bytes, T* to) noexcept {
  if (message.kind != to->kind || bytes != sizeof *to) return false;
  std::memcpy(to, message.bytes, sizeof *to);
  return true;
}

// Why connect_to_service() failed, as a sentence.
Error error_of_connecting(int failed) noexcept;

// A refusal as a sentence.
Error error_of(const wire::Refused& refused) noexcept;

}  // namespace haul
