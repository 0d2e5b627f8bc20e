// Messages that come in several packets, one right behind the other. A peer sends one of them at a
// time; its receive, or the place where it is kept, is settled by the first packet, and the rest
// goes there without matching again (Peer::parts_*).
#pragma once

#include "fabric/protocol/matching/matcher_part.hpp"

namespace haul::fabric {

class PartedMessages : public MatcherPart<PartedMessages> {
 public:
  void begin_parts(Peer& peer, const ReceivedPacket& packet) noexcept;
  void on_more(Peer& peer, const ReceivedPacket& packet) noexcept;
};

}  // namespace haul::fabric
