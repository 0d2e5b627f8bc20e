// The first packet of each operation: a whole message, or the packet that announces one, an RMA
// request or an atomic. A packet that finds no room, or has to wait for its turn, goes to the
// backlog.
#pragma once

#include "fabric/protocol/matching/matcher_part.hpp"
#include "fabric/protocol/pool.hpp"

namespace haul::fabric {

class Sending : public MatcherPart<Sending> {
 public:
  explicit Sending(std::size_t limit) noexcept : outgoing(limit) {}

  ssize_t send(Peer& peer, const SendRequest& request) noexcept;
  // An operation with its memory and ending; nullptr: -FI_EAGAIN.
  Outgoing* new_outgoing(Peer& peer, PacketKind kind, const Pieces& pieces,
                         bool keep_bytes) noexcept;
  static void renew(Outgoing& operation, Peer& peer, PacketKind kind,
                    const Pieces& pieces) noexcept;
  // Sends the first packet, now or when there is room.
  void start(Outgoing& operation) noexcept;
  // Sends what begins the operation; false if there is no room now.
  bool first_packet(Outgoing& operation) noexcept;
  void end(Outgoing& operation, int error) noexcept;

  Pool<Outgoing> outgoing;

 private:
  bool hand_over(Peer& self, const SendRequest& request, std::size_t bytes) noexcept;
  bool send_now(Peer& peer, const SendRequest& request, std::size_t bytes) noexcept;
  void write_parts(Outbox& outbox, Header& header, const Pieces& pieces, std::size_t end) noexcept;
  bool goes_along(const Peer& peer, const Pieces& pieces) const noexcept;
  bool send_parts(Peer& peer, Header& header, const Pieces& pieces) noexcept;
  bool eager_fits(const Outgoing& operation) const noexcept;
  bool is_better_asked_for(Peer& peer, const iovec& piece) noexcept;
  void describe(Outgoing& operation, Header& header) noexcept;
};

}  // namespace haul::fabric
