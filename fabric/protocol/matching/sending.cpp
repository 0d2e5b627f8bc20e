// The sender's side of the protocol. A message goes one of three ways, and the first that fits is
// taken:
//   eager       one packet with the bytes in it, unasked, where the peer takes that much;
//   in parts    several packets in a row, also unasked, so that the receiver copies one out while
//               the next is copied in. All have room, or none is sent;
//   rendezvous  a request that says where the bytes lie; the receiver chooses how they come
//               (transfers.hpp).
// A message of an endpoint to itself, of a length that goes unasked and whose receive is posted,
// needs none of these: it is copied once, in the call. (Longer ones are asked for as others are, so
// that the planner decides who moves them.)
//
// A sender that wants to know of the delivery (FI_DELIVERY_COMPLETE) is told when the peer's
// endpoint has the bytes in memory of its own, be it a ring that the peer has accepted; of the
// match (FI_MATCH_COMPLETE), when the peer says so.
//
// Order is kept by the peer's line of first packets (`pending`): as long as one waits there, for
// room, for a fence or for the connection, everything that comes later queues behind it. The three
// ways share that line, so messages match in the order in which they were sent.
#include "fabric/protocol/matching/sending.hpp"

#include <rdma/fi_endpoint.h>

#include <algorithm>

#include "base/machine/clock.hpp"
#include "fabric/protocol/matching/matcher_parts.hpp"

namespace haul::fabric {

namespace {

using Delivery = Outbox::Delivery;

// Up to 32 bytes into a header: two overlapping moves instead of a call.
void copy_inline(std::uint8_t* to, const void* from, std::size_t bytes) noexcept {
  const auto* source = static_cast<const std::uint8_t*>(from);
  if (bytes >= 16) {
    std::memcpy(to, source, 16);
    std::memcpy(to + bytes - 16, source + bytes - 16, 16);
  } else if (bytes >= 8) {
    std::memcpy(to, source, 8);
    std::memcpy(to + bytes - 8, source + bytes - 8, 8);
  } else {
    for (std::size_t i = 0; i < bytes; ++i) to[i] = source[i];
  }
}

std::uint8_t packet_flags(bool tagged, std::uint64_t flags) noexcept {
  return static_cast<std::uint8_t>((tagged ? packet_tagged : 0) |
                                   ((flags & FI_REMOTE_CQ_DATA) != 0 ? packet_data : 0));
}

bool goes_in_parts(const Outbox& outbox, std::size_t bytes) noexcept {
  return outbox.part_bytes != 0 && bytes > outbox.part_bytes;
}

}  // namespace

ssize_t Sending::send(Peer& peer, const SendRequest& request) noexcept {
  if (const int error = the<Peers>().reach(peer); error != 0) return error;
  const bool told = (request.flags & FI_COMPLETION) != 0 || sink().counts(Event::send);
  if (told && !sink().room(Event::send)) return -FI_EAGAIN;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < request.count; ++i) bytes += request.pieces[i].iov_len;

  const bool delivered = (request.flags & FI_DELIVERY_COMPLETE) != 0;
  const bool by_hand = &peer == the<Turns>().own_peer && hand_over(peer, request, bytes);
  const bool plain =
      (request.flags & (FI_MATCH_COMPLETE | FI_FENCE)) == 0 &&
      (!delivered || (peer.outbox != nullptr && peer.outbox->delivery() == Delivery::at_once));
  const bool asked = request.count == 1 && (request.flags & FI_INJECT) == 0 &&
                     is_better_asked_for(peer, request.pieces[0]);
  const bool sent =
      by_hand || (plain && !asked && peer.pending.empty() && send_now(peer, request, bytes));
  if (sent && !told) return 0;
  const Ending ending =
      Ending::of(request, Event::send, FI_SEND | (request.tagged ? FI_TAGGED : FI_MSG));
  if (sent) {
    the<Surroundings>().tell(ending, 0);
    return 0;
  }
  // Should it fail, that makes an entry.
  if (!told && !sink().room(Event::send)) return -FI_EAGAIN;
  Outgoing* operation =
      new_outgoing(peer, PacketKind::message, Pieces(request.pieces, request.count),
                   (request.flags & FI_INJECT) != 0);
  if (operation == nullptr) return -FI_EAGAIN;
  operation->ending = ending;
  operation->flags = packet_flags(request.tagged, request.flags);
  operation->tag = request.tag;
  operation->data = request.data;
  operation->fence = (request.flags & FI_FENCE) != 0;
  operation->replied = (request.flags & FI_MATCH_COMPLETE) != 0;
  operation->delivered = delivered;
  operation->asked = asked;
  start(*operation);
  return 0;
}

// To itself: whether it went straight into its receive. What was sent before, and waits or has not
// been looked at, must match first.
bool Sending::hand_over(Peer& self, const SendRequest& request, std::size_t bytes) noexcept {
  if (request.count > 1 || bytes > in_parts_bytes || (request.flags & FI_FENCE) != 0) return false;
  if (!self.pending.empty() || self.parts_left != 0 || the<Turns>().own_packets()) return false;
  Incoming* posted = the<Receiving>().match_posted(self, request.tagged, request.tag);
  if (posted == nullptr || posted->multi) return false;
  const void* const from = request.count == 1 ? request.pieces[0].iov_base : nullptr;
  statistics().count_sent(Path::mapped, bytes);
  the<Receiving>().deliver(
      *posted, self,
      {request.tag, request.data, packet_flags(request.tagged, request.flags),
       static_cast<const std::byte*>(from), bytes, HaulPrivateCopy::prefetching});
  return true;
}

bool Sending::send_now(Peer& peer, const SendRequest& request, std::size_t bytes) noexcept {
  if (peer.outbox == nullptr || peer.throttled || bytes > peer.outbox->eager_bytes) return false;
  if (goes_in_parts(*peer.outbox, bytes)) {
    const Pieces pieces(request.pieces, request.count);
    Header header;
    header.kind = PacketKind::message;
    header.flags = packet_flags(request.tagged, request.flags);
    header.tag = request.tag;
    header.data = request.data;
    return send_parts(peer, header, pieces);
  }
  const bool inlined = bytes <= inline_capacity;
  const Outbox::Slot slot = peer.outbox->reserve(inlined ? 0 : bytes, Outbox::Lane::eager);
  if (slot.header == nullptr) return false;
  Header& header = *slot.header;
  const std::uint8_t flags = packet_flags(request.tagged, request.flags);
  header.kind = PacketKind::message;
  header.flags = static_cast<std::uint8_t>(flags | (inlined ? packet_inlined : 0));
  header.detail = 0;
  header.payload = static_cast<std::uint32_t>(bytes);
  header.tag = request.tag;
  header.data = request.data;
  if (inlined && request.count <= 1) {
    if (bytes != 0) copy_inline(header.bytes, request.pieces[0].iov_base, bytes);
  } else {
    auto* to = inlined ? reinterpret_cast<std::byte*>(header.bytes) : slot.payload;
    for (std::size_t i = 0; i < request.count; ++i) {
      copy_bytes(to, request.pieces[i].iov_base, request.pieces[i].iov_len, peer.outbox->copies_in);
      to += request.pieces[i].iov_len;
    }
  }
  peer.outbox->commit();
  statistics().count_sent(peer.off_node ? Path::offnode
                          : inlined     ? Path::inlined
                                        : Path::eager,
                          bytes);
  return true;
}

// The first `end` bytes, for which there is room, in parts; `header`: of the first of them.
void Sending::write_parts(Outbox& outbox, Header& header, const Pieces& pieces,
                          std::size_t end) noexcept {
  for (std::size_t offset = 0; offset < end;) {
    const std::size_t part = std::min(outbox.part_bytes, end - offset);
    const Outbox::Slot slot = outbox.reserve(part, Outbox::Lane::eager);
    header.payload = static_cast<std::uint32_t>(part);
    std::memcpy(static_cast<void*>(slot.header), &header, offsetof(Header, ready));
    pieces.gather(offset, slot.payload, part, outbox.copies_in);
    outbox.commit();
    header.kind = PacketKind::more;
    offset += part;
  }
}

// Whether the first in_parts_bytes of a message go along with its request, since the peer is likely
// to want all of it in pieces: asking takes two microseconds, in which nothing else is copied. From
// a megabyte on that is little.
bool Sending::goes_along(const Peer& peer, const Pieces& pieces) const noexcept {
  constexpr std::size_t most_bytes = std::size_t{1} << 20;
  Outbox& outbox = *peer.outbox;
  if (pieces.bytes <= in_parts_bytes || pieces.bytes > most_bytes || peer.throttled ||
      outbox.part_bytes == 0)
    return false;
  const bool mapped = pieces.count == 1 && network().access().can_be_mapped(peer, pieces.at[0]);
  return peer.wants_pieces[mapped] && outbox.holds(in_parts_bytes + outbox.part_bytes);
}

// A whole message in several packets, which the receiver copies out while more come in; false if
// they do not all have room. `header`: of the first.
bool Sending::send_parts(Peer& peer, Header& header, const Pieces& pieces) noexcept {
  Outbox& outbox = *peer.outbox;
  if (!outbox.holds(pieces.bytes)) return false;
  header.flags |= packet_parts;
  header.far.length = pieces.bytes;
  write_parts(outbox, header, pieces, pieces.bytes);
  statistics().count_sent(Path::eager, pieces.bytes);
  DirectAccess& access = network().access();
  if (access.observes(pieces.bytes)) {
    access.note_large(Path::eager, pieces.bytes, 0);
    access.note_unmapped(pieces.at, pieces.count, pieces.bytes, true);
  }
  return true;
}

Outgoing* Sending::new_outgoing(Peer& peer, PacketKind kind, const Pieces& pieces,
                                bool keep_bytes) noexcept {
  Outgoing* operation = outgoing.take();
  if (operation == nullptr) return nullptr;
  renew(*operation, peer, kind, pieces);
  if (keep_bytes && pieces.bytes != 0) {
    operation->bounce = std::make_unique<std::byte[]>(pieces.bytes);
    pieces.gather(0, operation->bounce.get(), pieces.bytes, HaulPrivateCopy::prefetching);
    operation->pieces = Pieces(operation->bounce.get(), pieces.bytes);
  }
  if (BulkRequests::is_bulk(pieces.bytes)) the<BulkRequests>().note_bulk_sent(operation->token);
  return operation;
}

void Sending::renew(Outgoing& operation, Peer& peer, PacketKind kind,
                    const Pieces& pieces) noexcept {
  operation.peer = &peer;
  operation.stage = Outgoing::Stage::unsent;
  operation.kind = kind;
  operation.pieces = pieces;
  operation.fence = operation.replied = operation.delivered = operation.asked = false;
  operation.along = false;
  operation.flags = operation.tag = operation.data = operation.address = 0;
  operation.detail = 0;
  operation.offset = operation.limit = 0;
  operation.peer_token = 0;
  operation.claim = 0;
  operation.lent = MemoryPlace();
  operation.transfer = ChunkTransfer();
  operation.ending = Ending();
}

void Sending::start(Outgoing& operation) noexcept {
  Peer& peer = *operation.peer;
  if (const int error = the<Peers>().reach(peer); error != 0) return end(operation, -error);
  const bool held = operation.fence && peer.awaited != 0;
  if (!held && peer.pending.empty() && peer.outbox != nullptr && first_packet(operation)) return;
  peer.pending.push_back(operation);
  the<Backlog>().mark_busy(peer);
}

bool Sending::eager_fits(const Outgoing& operation) const noexcept {
  const Peer& peer = *operation.peer;
  if (operation.kind != PacketKind::message)
    return operation.pieces.bytes <= peer.outbox->packet_bytes;
  return operation.pieces.bytes <= peer.outbox->eager_bytes && !peer.throttled && !operation.asked;
}

// One copy by a mapping mostly takes less time than two, from here on, though it has to be asked
// for. (On a Xeon 64 KiB took 4.5 us so, and 8 unasked.) But where no buffer is in a cache of both
// sides, it may take twice as long, so now and then the other way is tried. What is compared is the
// time from one such message to the next. Where several are under way at once that says nothing.
bool Sending::is_better_asked_for(Peer& peer, const iovec& piece) noexcept {
  constexpr std::size_t least_bytes = std::size_t{16} << 10;
  if (piece.iov_len <= least_bytes || piece.iov_len > in_parts_bytes ||
      !network().access().can_be_mapped(peer, piece))
    return false;
  if (!peer.asking) peer.asking = std::make_unique<Trials>();
  Trial* const trial = peer.asking->of(piece.iov_len);
  trial->done(now_ns(), peer.awaited == 0 && peer.pending.empty());
  return trial->choose({MessageWay::direct, {MessageWay::pieces}}) == MessageWay::direct;
}

void Sending::describe(Outgoing& operation, Header& header) noexcept {
  Peer& peer = *operation.peer;
  bool huge = false;
  header.far.place =
      network().access().describe(peer, operation.pieces.at, operation.pieces.count, &huge);
  if (huge) header.flags |= packet_huge;
  if (header.far.place.pieces != 1) return;
  operation.lent = header.far.place;
  operation.lent_huge = huge;
  for (unsigned i = 0; i < DirectAccess::claim_count; ++i) {
    if ((peer.claims_used & (1u << i)) != 0) continue;
    std::atomic<std::uint64_t>* word = network().access().claim(peer, true, i);
    if (word == nullptr) return;
    word->store(0, std::memory_order_relaxed);
    peer.claims_used |= 1u << i;
    operation.claim = i + 1;
    operation.transfer.claims = word;
    header.detail = static_cast<std::uint16_t>(i + 1);
    return;
  }
}

// Sends what begins the operation; false if there is no room now.
bool Sending::first_packet(Outgoing& operation) noexcept {
  Peer& peer = *operation.peer;
  if (operation.delivered) {
    const Delivery delivery = peer.outbox->delivery();
    if (delivery == Delivery::not_yet) return false;
    operation.replied |= delivery == Delivery::by_answer;
  }
  PacketKind kind = operation.kind;
  bool whole =
      kind == PacketKind::atomic || kind == PacketKind::result;  // the bytes go with the packet
  if (kind == PacketKind::message || kind == PacketKind::write) {
    whole = eager_fits(operation);
    if (!whole)
      kind = kind == PacketKind::message ? PacketKind::request : PacketKind::write_request;
  }
  const bool in_parts =
      kind == PacketKind::message && goes_in_parts(*peer.outbox, operation.pieces.bytes);
  const std::size_t payload = whole && !in_parts                  ? operation.pieces.bytes
                              : kind == PacketKind::write_request ? sizeof(MemoryPlace)
                                                                  : 0;
  operation.along = kind == PacketKind::request && goes_along(peer, operation.pieces);
  Outbox::Slot slot;
  if (!in_parts) {
    slot = peer.outbox->reserve(payload, Outbox::Lane::eager);
    if (slot.header == nullptr) return false;
  }
  Header header;
  header.kind = kind;
  header.flags =
      static_cast<std::uint8_t>(operation.flags | (operation.replied ? packet_reply : 0));
  header.detail = operation.detail;
  header.payload = static_cast<std::uint32_t>(payload);
  header.tag = operation.tag;
  header.data = operation.data;
  header.far.length = kind == PacketKind::read ? operation.limit : operation.pieces.bytes;
  header.far.token = kind == PacketKind::read ? operation.peer_token : operation.token;
  header.far.place = MemoryPlace();
  if (kind == PacketKind::atomic && !operation.replied) header.far.token = operation.peer_token;
  if (kind == PacketKind::request || kind == PacketKind::answer) {
    describe(operation, header);
  } else if (kind == PacketKind::write_request) {
    describe(operation, header);
    std::memcpy(slot.payload, &header.far.place, sizeof(MemoryPlace));
    header.far.place = MemoryPlace();
  }
  if (kind == PacketKind::write || kind == PacketKind::write_request || kind == PacketKind::read ||
      kind == PacketKind::atomic) {
    header.far.place.address = operation.address;
  }
  if (operation.along) header.flags |= packet_parts;
  if (in_parts) {
    if (!send_parts(peer, header, operation.pieces)) return false;
  } else {
    if (whole) operation.pieces.gather(0, slot.payload, payload, peer.outbox->copies_in);
    std::memcpy(static_cast<void*>(slot.header), &header, offsetof(Header, ready));
    peer.outbox->commit();
    if (operation.along) {
      header.kind = PacketKind::more;
      write_parts(*peer.outbox, header, operation.pieces, in_parts_bytes);
    }
  }
  if (whole && !in_parts && (kind == PacketKind::message || kind == PacketKind::write)) {
    statistics().count_sent(peer.off_node ? Path::offnode : Path::eager, operation.pieces.bytes);
  }
  const bool ends = kind == PacketKind::read || (whole && !operation.replied);
  operation.unlink_queue();
  if (ends) {
    end(operation, 0);
  } else {
    operation.stage = Outgoing::Stage::waiting;
    ++peer.awaited;
  }
  return true;
}

void Sending::end(Outgoing& operation, int error) noexcept {
  if (operation.stage != Outgoing::Stage::unsent) --operation.peer->awaited;
  if (operation.lent.pieces != 0) network().access().withdraw(*operation.peer, operation.lent);
  if (operation.claim != 0) operation.peer->claims_used &= ~(1u << (operation.claim - 1));
  const Ending ending = operation.ending;
  std::shared_ptr<Group> group = std::move(operation.group);
  outgoing.give(&operation);
  if (group) {
    the<Surroundings>().leave(std::move(group), error);
  } else {
    the<Surroundings>().tell(ending, error);
  }
}

}  // namespace haul::fabric
