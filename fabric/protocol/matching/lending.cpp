// The sender's side of a rendezvous.
#include <algorithm>

#include "fabric/protocol/matching/matcher_parts.hpp"

namespace haul::fabric {

void Lending::on_clear(Peer& peer, const Header& header) noexcept {
  Outgoing* operation = the<Sending>().outgoing.find(header.tag);
  if (operation == nullptr || operation->peer != &peer) return;  // it has ended
  if (operation->stage != Outgoing::Stage::waiting &&
      operation->stage != Outgoing::Stage::sharing) {
    return the<Peers>().garbage(peer, "asks for a message that it has asked for");
  }
  const bool split = (header.flags & packet_split) != 0;
  if (split && operation->stage != Outgoing::Stage::waiting)
    return the<Peers>().garbage(peer, "asks twice for a share");
  operation->peer_token = header.far.token;
  operation->limit = std::min<std::size_t>(header.far.length, operation->pieces.bytes);
  operation->offset = 0;
  if (operation->kind == PacketKind::message)
    peer.wants_pieces[operation->is_lent_mapped()] = !split;
  if (!split) {
    if (operation->along && header.data == in_parts_bytes) operation->offset = in_parts_bytes;
    if (operation->offset >= operation->limit)
      return the<Peers>().garbage(peer, "asks for what it has been sent");
    operation->unlink_motion();
    await_chunk(*operation);
    if ((header.flags & packet_mappable) == 0) note_unmapped(*operation, operation->limit);
    operation->stage = Outgoing::Stage::streaming;
    peer.streaming.push_back(*operation);
    the<Backlog>().mark_busy(peer);
    return;
  }
  const MemoryPlace& place = header.far.place;
  const bool huge = (header.flags & packet_huge) != 0;
  if (operation->transfer.claims == nullptr || place.pieces != 1 || operation->limit == 0 ||
      header.detail < smallest_chunk_log2 || header.detail > largest_chunk_log2 ||
      network().access().ways(peer, place, operation->limit, huge).only(MessageWay::pieces)) {
    // Unless all is left to this side, the receiver copies it.
    if ((header.flags & packet_alone) != 0) send_share(*operation, FI_EOPNOTSUPP);
    return;
  }
  ChunkTransfer& transfer = operation->transfer;
  transfer.place = place;
  transfer.streamed = (header.flags & packet_streamed) != 0;
  transfer.chunk = std::size_t{1} << header.detail;
  transfer.chunks = chunks_of(operation->limit, transfer.chunk);
  operation->stage = Outgoing::Stage::sharing;
  sharing.push_back(*operation);
}

void Lending::on_finish(Peer& peer, const Header& header) noexcept {
  Outgoing* operation = the<Sending>().outgoing.find(header.tag);
  if (operation == nullptr || operation->peer != &peer ||
      operation->stage == Outgoing::Stage::unsent) {
    return;
  }
  await_chunk(*operation);
  // Without a `clear` the receiver has copied it alone.
  if (operation->kind == PacketKind::message && operation->lent.pieces != 0 &&
      operation->limit == 0)
    peer.wants_pieces[operation->is_lent_mapped()] = false;
  if (operation->stage == Outgoing::Stage::streaming) operation->unlink_queue();
  // The kernel has copied it, from small pages, if nobody mapped anything and no piece was sent.
  const bool by_kernel = operation->lent.pieces == 1 && operation->lent.arena == 0 &&
                         operation->transfer.place.arena == 0 && operation->offset == 0;
  if (by_kernel && !operation->lent_huge && header.detail == 0)
    note_unmapped(*operation, operation->pieces.bytes);
  the<Sending>().end(*operation, header.detail);
}

void Lending::await_chunk(Outgoing& operation) noexcept {
  while (operation.transfer.ticket != 0 &&
         network().access().test(operation.transfer.ticket) == 0) {
  }
  operation.transfer.ticket = 0;
}

void Lending::note_unmapped(const Outgoing& operation, std::size_t bytes) noexcept {
  DirectAccess& access = network().access();
  // (What the program may reuse meanwhile lies in memory of haul's.)
  if (access.observes(bytes) && !operation.peer->off_node && operation.bounce == nullptr)
    access.note_unmapped(operation.pieces.at, operation.pieces.count, bytes, true);
}

bool Lending::move(Outgoing& operation) noexcept {
  ChunkTransfer& transfer = operation.transfer;
  DirectAccess& access = network().access();
  int error = 0;
  if (transfer.ticket != 0) {
    const int state = access.test(transfer.ticket);
    if (state == 0) return false;
    transfer.ticket = 0;
    if (state > 0) {
      ++transfer.mine;
      return true;
    }
    error = -state;
  } else if (claim_chunk(transfer, true)) {
    const std::size_t offset = (transfer.chunks - 1 - transfer.next) * transfer.chunk;
    const std::size_t bytes = std::min(transfer.chunk, operation.limit - offset);
    ++transfer.next;
    const Pieces part = operation.pieces.slice(offset, bytes);
    transfer.ticket = access.start(*operation.peer, DirectAccess::Direction::push, part.at,
                                   part.count, transfer.place, offset, bytes, transfer.streamed);
    if (transfer.ticket > 0) return true;
    if (transfer.ticket == 0) {
      ++transfer.mine;
      return true;
    }
    error = static_cast<int>(-transfer.ticket);
    transfer.ticket = 0;
  }
  operation.unlink_motion();
  operation.stage = Outgoing::Stage::waiting;
  if (transfer.mine != 0 || error != 0) send_share(operation, error);
  return true;
}

void Lending::send_share(Outgoing& operation, int error) noexcept {
  the<Backlog>().send_note(*operation.peer, PacketKind::share, operation.peer_token, error,
                           operation.transfer.mine);
}

}  // namespace haul::fabric
