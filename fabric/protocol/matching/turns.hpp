// One turn of the matcher: news of peers, then what arrives, what moves, and what leaves.
#pragma once

#include <vector>

#include "fabric/protocol/matching/matcher_part.hpp"

namespace haul::fabric {

class Turns : public MatcherPart<Turns> {
 public:
  struct Source {
    Inbox* inbox = nullptr;
    Peer* peer = nullptr;  // nullptr: of many (packets name theirs)
    bool quiet = false;    // the last turn found nothing there
  };

  bool progress() noexcept;
  void handle(Peer& peer, const ReceivedPacket& packet) noexcept;

  // Whether packets of this endpoint to itself have not been looked at; it must be its own peer.
  bool own_packets() const noexcept { return sources.front().inbox->ready(); }

  std::vector<Source> sources;
  Peer* own_peer = nullptr;  // this endpoint as its own peer, once it is; its source is the first

 private:
  // A peer that broke the rules, or nullptr.
  Peer* serve_own(bool* active) noexcept;
  Peer* drain(Source& source) noexcept;
  // Whether a packet is there: at once, or, where the next part of a message is due, in a moment.
  bool awaits(const Inbox& inbox, Peer* only) noexcept;

  std::uint32_t turns_ = 0;
  unsigned looks_left_ = 0;  // in this turn
};

}  // namespace haul::fabric
