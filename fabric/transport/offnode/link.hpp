// A link: the TCP connection between two endpoints of different nodes. It carries the messages
// before and after all packets, and its end tells that the peer has gone.
//
// Threads: not safe.
#pragma once

#include <cstddef>

#include "base/os/descriptor.hpp"
#include "fabric/transport/offnode/wire.hpp"

namespace haul::fabric {

class OffnodeLink {
 public:
  explicit OffnodeLink(int fd) noexcept;  // takes a connected socket
  ~OffnodeLink();
  OffnodeLink(const OffnodeLink&) = delete;
  OffnodeLink& operator=(const OffnodeLink&) = delete;

  // Sends it. The few messages of a link always find room in its socket; if one does not, the link
  // is broken.
  void say(const LinkMessage& message) noexcept;
  enum class Heard : std::uint8_t { nothing, message, closed };
  // closed: also by garbage.
  Heard hear(LinkMessage* message) noexcept;
  // The address of this end; false if the connection is gone.
  bool own_address(os::InetAddress* address) const noexcept;

 private:
  os::Descriptor fd_;
  std::size_t got_ = 0;  // bytes of incoming_
  LinkMessage incoming_;
};

}  // namespace haul::fabric
