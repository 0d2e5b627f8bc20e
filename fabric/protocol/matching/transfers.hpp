// Rendezvous: how bytes that are still with their sender get to the receiver. The receiver chooses
// when the message has met its receive, and each choice is a conversation of its own:
//
//   receiver copies   The receiver reads the sender's memory, by a mapping or by the kernel, and
//                     says `finish`.
//   both copy         The receiver says `clear` with packet_split and the place of its own memory.
//                     Both then claim chunks by one shared word, the receiver from the front, the
//                     sender from the back. The sender says `share` when it is done, the receiver
//                     `finish`.
//   sender copies     The same, but all chunks are the sender's (packet_alone).
//   pieces            The receiver says `clear` alone, and the sender streams `data` packets.
//
// By packet_streamed the receiver has both sides write past the caches what they copy directly.
// A way that fails half-way falls back to pieces, and the same bytes are copied again. The shared
// word lies in memory that the peer may write: it decides only whether a side copies one chunk
// more, never where, so a peer that lies about it harms its own message alone.
#pragma once

#include <atomic>

#include "fabric/protocol/matching/matcher_part.hpp"

namespace haul::fabric {

// The receiver's side.
class Pulling : public MatcherPart<Pulling> {
 public:
  // The message's bytes are with the sender: choose how they come. The first `along` of them come
  // with the request, to the receive that peer.parts_receive names.
  void begin(Incoming& receive, const MemoryPlace& place, std::uint8_t flags, std::uint16_t detail,
             std::size_t along = 0) noexcept;
  void on_data(Peer& peer, const ReceivedPacket& packet) noexcept;
  void on_share(Peer& peer, const Header& header) noexcept;
  // One step; true if something happened. May end the operation.
  bool move(Incoming& receive) noexcept;
  void finish_transfer(Incoming& receive, int error) noexcept;
  // If all that is in motion here is with devices: how long the first needs, about. Else 0.
  std::uint64_t left_ns() noexcept;

  List<Incoming, InMotion> moving;  // this side moves chunks from a peer

 private:
  // `receive` is moved by this side from now on.
  ChunkTransfer& begin_moving(Incoming& receive, const MemoryPlace& place, Path path) noexcept;
  bool leaves_to_device(Incoming& receive, const MemoryPlace& place) noexcept;
  MessageWay choose(Incoming& receive, MessageWays ways) noexcept;
  bool can_let_sender_copy(const Incoming& receive, std::uint16_t detail) noexcept;
  void let_sender_copy(Incoming& receive, std::uint16_t detail, bool streamed) noexcept;
  void share(Incoming& receive, std::atomic<std::uint64_t>* claims, const MemoryPlace& own,
             bool huge, unsigned log2) noexcept;
  std::atomic<std::uint64_t>* claims_of(Peer& peer, std::uint16_t detail) noexcept;
  void ask_for_pieces(Incoming& receive, std::size_t along = 0) noexcept;
  void note_arrival(const Incoming& receive, std::uint64_t taken_ns) noexcept;
};

// The sender's.
class Lending : public MatcherPart<Lending> {
 public:
  void on_clear(Peer& peer, const Header& header) noexcept;
  void on_finish(Peer& peer, const Header& header) noexcept;
  // One step; true if something happened.
  bool move(Outgoing& operation) noexcept;

  List<Outgoing, InMotion> sharing;  // this side moves chunks to a peer

 private:
  void send_share(Outgoing& operation, int error) noexcept;
  // Until the chunk that is under way has been copied.
  void await_chunk(Outgoing& operation) noexcept;
  void note_unmapped(const Outgoing& operation, std::size_t bytes) noexcept;
};

// Sizes of chunks that one side may ask of the other.
inline constexpr unsigned smallest_chunk_log2 = 12, largest_chunk_log2 = 40;

inline std::uint64_t chunks_of(std::size_t bytes, std::size_t chunk) noexcept {
  return (bytes + chunk - 1) / chunk;
}

// Claims one chunk more: `from_back` for the sending side. What the peer may have written into the
// word decides only whether there is one, never which.
inline bool claim_chunk(ChunkTransfer& transfer, bool from_back) noexcept {
  constexpr std::uint64_t back_one = std::uint64_t{1} << 32;
  if (transfer.claims == nullptr) return transfer.next < transfer.end;
  const std::uint64_t seen =
      transfer.claims->fetch_add(from_back ? back_one : 1, std::memory_order_acq_rel);
  const std::uint64_t front = static_cast<std::uint32_t>(seen), back = seen >> 32;
  return front + back < transfer.chunks && transfer.next < transfer.chunks;
}

}  // namespace haul::fabric
