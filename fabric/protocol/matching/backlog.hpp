// What waits for room at a peer, in three lines that are served in this order: control packets,
// first packets of operations, pieces of messages that were asked for.
#pragma once

#include <vector>

#include "fabric/protocol/matching/matcher_part.hpp"

namespace haul::fabric {

class Backlog : public MatcherPart<Backlog> {
 public:
  // A packet without payload, in order with others of its kind.
  void send_control(Peer& peer, const Header& header) noexcept;
  // One that says only this: what the peer's operation `token` is told. detail: FI_E*, or as the
  // kind has it.
  void send_note(Peer& peer, PacketKind kind, std::uint64_t token, int detail,
                 std::uint64_t data = 0) noexcept;
  void send_finish(Peer& peer, std::uint64_t token, int error) noexcept {
    send_note(peer, PacketKind::finish, token, error);
  }
  // Sends what waits, as far as there is room. True if anything was sent.
  bool push_out(Peer& peer) noexcept;
  bool push_out_all() noexcept;
  void mark_busy(Peer& peer) noexcept;
  bool has_backlog() const noexcept { return !busy_.empty(); }

 private:
  bool stream(Peer& peer) noexcept;  // true if anything was sent

  std::vector<Peer*> busy_;
};

}  // namespace haul::fabric
