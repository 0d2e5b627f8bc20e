// Bytes that are still with their sender: how they come. The receiving side chooses: it copies them
// itself through a mapping or by the kernel, both sides copy a share, the sender copies all, or the
// sender sends pieces.
#include <algorithm>
#include <bit>

#include "base/clock.hpp"
#include "fabric/protocol/matcher_impl.hpp"

namespace haul::fabric {

namespace {

// A share each is worth a packet more from here on, and chunks are claimed in these sizes: smaller
// ones lose to the line that carries the claims (mapped), or to system calls (kernel: 2 us a chunk,
// so there are two of them until they are so large that other peers would wait for one).
constexpr std::size_t share_from_bytes = std::size_t{128} << 10;
constexpr unsigned mapped_chunk_log2 = 16;
constexpr unsigned most_kernel_chunk_log2 = 18;
unsigned chunk_log2(bool mapped, std::size_t bytes) noexcept {
  if (mapped) return mapped_chunk_log2;
  const auto half = static_cast<unsigned>(std::bit_width((bytes - 1) / 2));
  return std::min(half, most_kernel_chunk_log2);
}
constexpr unsigned smallest_chunk_log2 = 12, largest_chunk_log2 = 40;

constexpr std::uint64_t back_one = std::uint64_t{1} << 32;

std::uint64_t chunks_of(std::size_t bytes, std::size_t chunk) noexcept {
  return (bytes + chunk - 1) / chunk;
}

// Claims one chunk more: `from_back` for the sending side. What the peer may have written into the
// word decides only whether there is one, never which.
bool claim_chunk(ChunkTransfer& transfer, bool from_back) noexcept {
  if (transfer.claims == nullptr) return transfer.next < transfer.end;
  const std::uint64_t seen =
      transfer.claims->fetch_add(from_back ? back_one : 1, std::memory_order_acq_rel);
  const std::uint64_t front = static_cast<std::uint32_t>(seen), back = seen >> 32;
  return front + back < transfer.chunks && transfer.next < transfer.chunks;
}

}  // namespace

void Matcher::Impl::begin(Incoming& receive, const MemoryPlace& place, std::uint8_t flags,
                          std::uint16_t detail) noexcept {
  Peer& peer = *receive.source;
  const std::size_t wanted = std::min(receive.length, receive.pieces.bytes);
  receive.stage = Incoming::Stage::matched;
  receive.reply_due = (flags & packet_reply) != 0;
  if (peer.state == Peer::State::lost) {
    return finish_transfer(receive, peer.error != 0 ? peer.error : FI_ESHUTDOWN);
  }
  if (wanted == 0) return finish_transfer(receive, 0);

  DirectAccess& access = network.access();
  const bool huge = (flags & packet_huge) != 0;
  const DirectAccess::Worth worth =
      place.pieces == 1 ? access.worth(peer, place, wanted, huge) : DirectAccess::Worth::never;
  if (worth != DirectAccess::Worth::always && lets_sender_copy(receive, detail)) return;
  if (!copies_directly(receive, worth, wanted)) return ask_for_pieces(receive);
  ChunkTransfer& transfer = receive.transfer;
  transfer = ChunkTransfer();
  transfer.place = place;
  receive.stage = Incoming::Stage::moving;
  moving.push_back(receive);
  Statistics::add(statistics.copies_in_flight, 1);

  std::atomic<std::uint64_t>* claims =
      wanted >= share_from_bytes ? claims_of(peer, detail) : nullptr;
  if (claims != nullptr) {
    bool own_huge = false;
    const MemoryPlace own =
        access.describe(peer, receive.pieces.at, receive.pieces.count, &own_huge);
    if (own.pieces == 1 && own.arena == place.arena)
      return share(receive, claims, own, own_huge, chunk_log2(place.arena != 0, wanted));
  }
  transfer.chunk =
      std::max<std::size_t>(access.grain(peer, wanted), std::size_t{1} << smallest_chunk_log2);
  transfer.chunks = transfer.end = chunks_of(wanted, transfer.chunk);
}

std::atomic<std::uint64_t>* Matcher::Impl::claims_of(Peer& peer, std::uint16_t detail) noexcept {
  const bool there = detail != 0 && detail <= DirectAccess::claim_count;
  return there ? network.access().claim(peer, false, detail - 1u) : nullptr;
}

// Asks the sender for its share, which goes to `own`.
void Matcher::Impl::share(Incoming& receive, std::atomic<std::uint64_t>* claims,
                          const MemoryPlace& own, bool huge, unsigned log2) noexcept {
  const std::size_t wanted = std::min(receive.length, receive.pieces.bytes);
  ChunkTransfer& transfer = receive.transfer;
  transfer.claims = claims;
  transfer.chunk = std::size_t{1} << log2;
  transfer.chunks = chunks_of(wanted, transfer.chunk);
  Header header;
  header.kind = PacketKind::clear;
  header.flags = static_cast<std::uint8_t>(packet_split | (huge ? packet_huge : 0) |
                                           (transfer.theirs ? packet_alone : 0));
  header.detail = static_cast<std::uint16_t>(log2);
  header.tag = receive.sender_token;
  header.far.length = wanted;
  header.far.token = receive.token;
  header.far.place = own;
  send_control(*receive.source, header);
}

// Whether the sender, whose memory this side cannot map, can map this side's: then all chunks are
// the sender's.
bool Matcher::Impl::lets_sender_copy(Incoming& receive, std::uint16_t detail) noexcept {
  DirectAccess& access = network.access();
  if (receive.pieces.count != 1 || !access.can_be_mapped(*receive.source, receive.pieces.at[0]))
    return false;
  std::atomic<std::uint64_t>* claims = claims_of(*receive.source, detail);
  if (claims == nullptr) return false;
  bool huge = false;
  const MemoryPlace own =
      access.describe(*receive.source, receive.pieces.at, receive.pieces.count, &huge);
  receive.transfer = ChunkTransfer();
  receive.transfer.theirs = true;
  receive.stage = Incoming::Stage::shared;
  Statistics::add(statistics.copies_in_flight, 1);
  share(receive, claims, own, huge, mapped_chunk_log2);
  return true;
}

bool Matcher::Impl::copies_directly(Incoming& receive, DirectAccess::Worth worth,
                                    std::size_t bytes) noexcept {
  Peer& peer = *receive.source;
  if (worth == DirectAccess::Worth::never || worth == DirectAccess::Worth::always)
    return worth == DirectAccess::Worth::always;
  const bool mostly = worth == DirectAccess::Worth::mostly;
  if (!peer.trials) peer.trials = std::make_unique<Trials>();
  receive.trial = peer.trials->of(bytes);
  if (receive.trial == nullptr) return mostly;
  if (peer.tried++ != 0) peer.crowded = true;
  using Way = Trial::Way;
  return receive.trial->choose(mostly ? Way::direct : Way::pieces) == Way::direct;
}

void Matcher::Impl::ask_for_pieces(Incoming& receive) noexcept {
  receive.stage = Incoming::Stage::matched;
  receive.received = 0;
  Header header;
  header.kind = PacketKind::clear;
  header.flags = 0;
  header.tag = receive.sender_token;
  header.far.length = std::min(receive.length, receive.pieces.bytes);
  header.far.token = receive.token;
  header.far.place = MemoryPlace();
  send_control(*receive.source, header);
}

void Matcher::Impl::on_clear(Peer& peer, const Header& header) noexcept {
  Outgoing* operation = outgoing.find(header.tag);
  if (operation == nullptr || operation->peer != &peer) return;  // it has ended
  if (operation->stage != Outgoing::Stage::waiting &&
      operation->stage != Outgoing::Stage::sharing) {
    return garbage(peer, "asks for a message that it has asked for");
  }
  const bool split = (header.flags & packet_split) != 0;
  if (split && operation->stage != Outgoing::Stage::waiting)
    return garbage(peer, "asks twice for a share");
  operation->peer_token = header.far.token;
  operation->limit = std::min<std::size_t>(header.far.length, operation->pieces.bytes);
  operation->offset = 0;
  if (!split) {
    operation->unlink_motion();
    while (operation->transfer.ticket != 0 &&
           network.access().test(operation->transfer.ticket) == 0) {
    }
    operation->transfer.ticket = 0;
    operation->stage = Outgoing::Stage::streaming;
    peer.streaming.push_back(*operation);
    mark_busy(peer);
    return;
  }
  const MemoryPlace& place = header.far.place;
  const bool huge = (header.flags & packet_huge) != 0;
  if (operation->transfer.claims == nullptr || place.pieces != 1 || operation->limit == 0 ||
      header.detail < smallest_chunk_log2 || header.detail > largest_chunk_log2 ||
      network.access().worth(peer, place, operation->limit, huge) == DirectAccess::Worth::never) {
    // Unless all is left to this side, the receiver copies it.
    if ((header.flags & packet_alone) != 0) send_share(*operation, FI_EOPNOTSUPP);
    return;
  }
  ChunkTransfer& transfer = operation->transfer;
  transfer.place = place;
  transfer.chunk = std::size_t{1} << header.detail;
  transfer.chunks = chunks_of(operation->limit, transfer.chunk);
  operation->stage = Outgoing::Stage::sharing;
  sharing.push_back(*operation);
}

void Matcher::Impl::on_data(Peer& peer, const ReceivedPacket& packet) noexcept {
  const Header& header = packet.header;
  Incoming* receive = incoming.find(header.tag);
  if (receive == nullptr || receive->source != &peer) return;  // it has failed meanwhile
  const std::size_t wanted = std::min(receive->length, receive->pieces.bytes);
  if (receive->stage != Incoming::Stage::matched || header.data > wanted ||
      header.payload > wanted - header.data || header.payload == 0) {
    return garbage(peer, "sends bytes that nobody asked for");
  }
  receive->pieces.scatter(header.data, packet.payload, header.payload);
  receive->received += header.payload;
  if (receive->received >= wanted) {
    if (!receive->reply_due) receive->sender_token = 0;  // it knows when it has sent all
    finish_transfer(*receive, 0);
  }
}

void Matcher::Impl::on_finish(Peer& peer, const Header& header) noexcept {
  Outgoing* operation = outgoing.find(header.tag);
  if (operation == nullptr || operation->peer != &peer ||
      operation->stage == Outgoing::Stage::unsent) {
    return;
  }
  while (operation->transfer.ticket != 0 &&
         network.access().test(operation->transfer.ticket) == 0) {
  }
  if (operation->stage == Outgoing::Stage::streaming) operation->unlink_queue();
  end(*operation, header.detail);
}

void Matcher::Impl::on_share(Peer& peer, const Header& header) noexcept {
  Incoming* receive = incoming.find(header.tag);
  if (receive == nullptr || receive->source != &peer || receive->transfer.claims == nullptr) return;
  if (receive->transfer.theirs) {
    receive->transfer.theirs = false;
    if (header.detail == 0) {
      statistics.count_sent(Path::mapped, std::min(receive->length, receive->pieces.bytes));
      return finish_transfer(*receive, 0);
    }
    Statistics::add(statistics.fallbacks, 1);
    Statistics::add(statistics.copies_in_flight, ~std::uint64_t{0});
    receive->transfer.claims = nullptr;
    return ask_for_pieces(*receive);
  }
  if (header.detail != 0) {
    // It could not write here after all: this side copies what is left, all of it anew.
    Statistics::add(statistics.fallbacks, 1);
    receive->transfer.claims = nullptr;
    receive->transfer.end = receive->transfer.chunks;
    receive->transfer.exhausted = false;
    receive->stage = Incoming::Stage::moving;
    return;
  }
  receive->shared_done = true;
}

bool Matcher::Impl::move(Incoming& receive) noexcept {
  ChunkTransfer& transfer = receive.transfer;
  DirectAccess& access = network.access();
  Peer& peer = *receive.source;
  const std::size_t wanted = std::min(receive.length, receive.pieces.bytes);
  if (transfer.ticket != 0) {
    const int state = access.test(transfer.ticket);
    if (state == 0) return false;
    transfer.ticket = 0;
    if (peer.state == Peer::State::lost) {
      finish_transfer(receive, peer.error != 0 ? peer.error : FI_ESHUTDOWN);
      return true;
    }
    if (state < 0) transfer.chunk = 0;  // it failed
  } else if (transfer.exhausted) {
    if (!receive.shared_done) return false;
    finish_transfer(receive, 0);
    return true;
  } else if (claim_chunk(transfer, false)) {
    const std::size_t offset = transfer.next * transfer.chunk;
    const std::size_t bytes = std::min(transfer.chunk, wanted - offset);
    ++transfer.next;
    const Pieces part = receive.pieces.slice(offset, bytes);
    transfer.ticket = access.start(peer, DirectAccess::Way::pull, part.at, part.count,
                                   transfer.place, offset, bytes);
    if (transfer.ticket < 0) {
      transfer.ticket = 0;
      transfer.chunk = 0;
    }
  } else {
    transfer.exhausted = true;
    // All chunks from the front were this side's: the others, if any, are the sender's.
    const bool all_mine = transfer.claims == nullptr || transfer.next >= transfer.chunks;
    statistics.count_sent(peer.off_node               ? Path::offnode
                          : transfer.place.arena != 0 ? Path::mapped
                                                      : Path::cma,
                          wanted);
    if (all_mine || receive.shared_done) {
      finish_transfer(receive, 0);
    } else {
      receive.stage = Incoming::Stage::shared;
    }
    return true;
  }
  if (transfer.chunk == 0) {  // refused after all: the sender sends pieces
    Statistics::add(statistics.fallbacks, 1);
    Statistics::add(statistics.copies_in_flight, ~std::uint64_t{0});
    receive.unlink_motion();
    transfer.claims = nullptr;
    ask_for_pieces(receive);
  }
  return true;
}

bool Matcher::Impl::move(Outgoing& operation) noexcept {
  ChunkTransfer& transfer = operation.transfer;
  DirectAccess& access = network.access();
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
    transfer.ticket = access.start(*operation.peer, DirectAccess::Way::push, part.at, part.count,
                                   transfer.place, offset, bytes);
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

void Matcher::Impl::send_share(Outgoing& operation, int error) noexcept {
  Header header;
  header.kind = PacketKind::share;
  header.tag = operation.peer_token;
  header.data = operation.transfer.mine;
  header.detail = static_cast<std::uint16_t>(error);
  send_control(*operation.peer, header);
}

// The bytes are here, or will not come.
void Matcher::Impl::finish_transfer(Incoming& receive, int error) noexcept {
  if (receive.stage == Incoming::Stage::moving || receive.stage == Incoming::Stage::shared) {
    Statistics::add(statistics.copies_in_flight, ~std::uint64_t{0});
  }
  receive.unlink_motion();
  if (receive.trial != nullptr) {
    Peer& peer = *receive.source;
    receive.trial->done(now_ns(), !peer.crowded && error == 0);
    if (--peer.tried == 0) peer.crowded = false;
    receive.trial = nullptr;
  }
  if (receive.sender_token != 0) {
    // A message that is cut short has arrived, as far as its sender is concerned.
    send_finish(*receive.source, receive.sender_token, error);
  }
  finish_receive(receive, error);
}

}  // namespace haul::fabric
