// Copies a payload out of a packet that is likely to be followed by another one of its message, and
// looks ahead for that meanwhile.
//
// Each packet costs the reader two fetches from the writer's core that wait for each other: the
// header, which says that there is a packet and where its payload lies, and the first lines of
// that. Both are asked for while the last part of the payload before is copied. Asked for sooner, a
// header would mostly be taken from a writer that has not filled it in yet. (A Zen 3, parts of 8
// KiB, time over that without, by turns within a launch: 32 and 64 KiB 0.94 between cores that
// share no cache, where the header took 0.2 us of a part's 1.1; between others 0.98 to 1.01.)
#pragma once

#include "fabric/protocol/pieces.hpp"
#include "fabric/protocol/transport_contract.hpp"

namespace haul::fabric {

inline void copy_out(const Pieces& to, std::size_t offset, const ReceivedPacket& packet,
                     std::size_t bytes, bool more) noexcept {
  // What is left of the payload when the next header is asked for, and when it is looked at.
  constexpr std::size_t asked_bytes = 2048, fetched_bytes = 1024;
  std::size_t at = 0;
  const auto copy_to = [&](std::size_t end) {
    to.scatter(offset + at, packet.payload + at, end - at, packet.copies_out);
    at = end;
  };
  if (more && packet.inbox != nullptr && bytes >= 2 * asked_bytes) {
    copy_to(bytes - asked_bytes);
    packet.inbox->ask_ahead();
    copy_to(bytes - fetched_bytes);
    packet.inbox->fetch_ahead();
  }
  copy_to(bytes);
}

}  // namespace haul::fabric
