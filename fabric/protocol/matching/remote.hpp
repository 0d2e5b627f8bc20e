// One-sided operations: the program's, and those by which peers reach regions of this process. Both
// sides are served by progress, the target's without its program's doing.
#pragma once

#include "fabric/protocol/matching/matcher_part.hpp"

namespace haul::fabric {

class RemoteAccess : public MatcherPart<RemoteAccess> {
 public:
  ssize_t rma(Peer& peer, const RmaRequest& request) noexcept;
  // An operation for the bytes that a read or an atomic has asked a peer for.
  Incoming* new_awaited(Peer& peer, const Pieces& pieces, std::size_t length) noexcept;
  void on_write(Peer& peer, const ReceivedPacket& packet) noexcept;
  void on_write_request(Peer& peer, const ReceivedPacket& packet) noexcept;
  void on_read(Peer& peer, const ReceivedPacket& packet) noexcept;
  void on_answer(Peer& peer, const ReceivedPacket& packet) noexcept;
  void tell_remote(Peer& peer, Event event, const Header& header, void* address,
                   std::size_t length) noexcept;
};

class RemoteAtomics : public MatcherPart<RemoteAtomics> {
 public:
  ssize_t atomic(Peer& peer, const AtomicRequest& request) noexcept;
  void on_atomic(Peer& peer, const ReceivedPacket& packet) noexcept;
  void on_result(Peer& peer, const ReceivedPacket& packet) noexcept;
};

}  // namespace haul::fabric
