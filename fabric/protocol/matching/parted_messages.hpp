// Messages that come in several packets, one right behind the other. A peer sends one of them at a
// time; its receive, or the place where it is kept, is settled by the first packet, and the rest
// goes there without matching again (Peer::parts_*).
#pragma once

#include "fabric/protocol/matching/matcher_part.hpp"

namespace haul::fabric {

class PartedMessages : public MatcherPart<PartedMessages> {
 public:
  void begin_parts(Peer& peer, const ReceivedPacket& packet) noexcept;
  // The first in_parts_bytes of a message come along with its request, and are dropped unless the
  // caller names its receive. False: that cannot be.
  bool begin_along(Peer& peer, const Header& request) noexcept;
  void on_more(Peer& peer, const ReceivedPacket& packet) noexcept;
};

}  // namespace haul::fabric
