// The receiver's side of a rendezvous.
#include <algorithm>
#include <bit>

#include "base/machine/clock.hpp"
#include "fabric/protocol/copy_out.hpp"
#include "fabric/protocol/matching/matcher_parts.hpp"

namespace haul::fabric {

namespace {

// A share each is worth a packet more from here on. A chunk costs a request and the line that
// carries the claims, through the kernel two microseconds, so there are two of them until they are
// so large that other peers would wait for one: each copies some 30 us at most. (A Zen 3, 1 MiB
// through mappings: 24 us by halves, 38 by chunks of 64 KiB.)
constexpr std::size_t share_from_bytes = std::size_t{128} << 10;
constexpr unsigned most_mapped_chunk_log2 = 19, most_kernel_chunk_log2 = 18;
unsigned chunk_log2(bool mapped, std::size_t bytes) noexcept {
  const auto half = static_cast<unsigned>(std::bit_width((bytes - 1) / 2));
  return std::min(half, mapped ? most_mapped_chunk_log2 : most_kernel_chunk_log2);
}

}  // namespace

void Pulling::begin(Incoming& receive, const MemoryPlace& place, std::uint8_t flags,
                    std::uint16_t detail, std::size_t along) noexcept {
  Peer& peer = *receive.source;
  const std::size_t wanted = receive.wanted();
  receive.stage = Incoming::Stage::matched;
  receive.reply_due = (flags & packet_reply) != 0;
  if (peer.state == Peer::State::lost) {
    return finish_transfer(receive, peer.loss());
  }
  if (wanted == 0) return finish_transfer(receive, 0);

  DirectAccess& access = network().access();
  const bool huge = (flags & packet_huge) != 0;
  receive.huge = huge;
  if (access.observes(wanted)) receive.begun_ns = now_ns();
  if (leaves_to_device(receive, place)) {
    if (along != 0) peer.parts_receive = 0;
    return;
  }
  MessageWays ways =
      place.pieces == 1 ? access.ways(peer, place, wanted, huge) : MessageWays(MessageWay::pieces);
  const bool to_itself = &peer == the<Turns>().own_peer;
  const bool reads_mapping = place.arena != 0 && !ways.only(MessageWay::pieces);
  const bool by_sender = !reads_mapping && !ways.only(MessageWay::direct) && !to_itself &&
                         can_let_sender_copy(receive, detail);
  if (by_sender) ways = access.mapped_ways(peer, wanted);
  receive.mappable = reads_mapping || by_sender;
  const MessageWay way = choose(receive, ways);
  if (way == MessageWay::pieces) return ask_for_pieces(receive, along);
  if (along != 0) peer.parts_receive = 0;  // copied directly, it needs none of them
  if (by_sender) return let_sender_copy(receive, detail, way == MessageWay::streamed);
  ChunkTransfer& transfer = begin_moving(receive, place,
                                         peer.off_node                   ? Path::offnode
                                         : place.arena != 0 || to_itself ? Path::mapped
                                                                         : Path::cma);
  transfer.streamed = way == MessageWay::streamed;
  std::atomic<std::uint64_t>* claims =
      wanted >= share_from_bytes && !to_itself ? claims_of(peer, detail) : nullptr;
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

ChunkTransfer& Pulling::begin_moving(Incoming& receive, const MemoryPlace& place,
                                     Path path) noexcept {
  receive.path = path;
  receive.stage = Incoming::Stage::moving;
  receive.transfer = ChunkTransfer();
  receive.transfer.place = place;
  moving.push_back(receive);
  Statistics::add(statistics().copies_in_flight, 1);
  return receive.transfer;
}

// A device gets all of it: two sides that copy chunks beside it would take from it what it does
// without them. Nothing is tried then: the device has been measured.
bool Pulling::leaves_to_device(Incoming& receive, const MemoryPlace& place) noexcept {
  if (place.pieces != 1 || place.arena == 0) return false;  // no device reads other memory
  const std::size_t wanted = receive.wanted();
  const Pieces whole = receive.pieces.slice(0, wanted);
  const std::int64_t ticket =
      network().access().offload(*receive.source, whole.at, whole.count, place, wanted);
  if (ticket < 0) return false;
  ChunkTransfer& transfer = begin_moving(receive, place, Path::mapped);
  transfer.ticket = ticket;
  transfer.chunk = wanted;
  transfer.chunks = transfer.next = transfer.end = 1;
  return true;
}

std::uint64_t Pulling::left_ns() noexcept {
  std::uint64_t least = 0;
  for (Incoming* receive = moving.front(); receive != nullptr; receive = moving.after(*receive)) {
    const std::uint64_t left = network().access().left_ns(receive->transfer.ticket);
    if (left == 0) return 0;
    least = least == 0 ? left : std::min(least, left);
  }
  return least;
}

std::atomic<std::uint64_t>* Pulling::claims_of(Peer& peer, std::uint16_t detail) noexcept {
  const bool there = detail != 0 && detail <= DirectAccess::claim_count;
  return there ? network().access().claim(peer, false, detail - 1u) : nullptr;
}

// Asks the sender for its share, which goes to `own`.
void Pulling::share(Incoming& receive, std::atomic<std::uint64_t>* claims, const MemoryPlace& own,
                    bool huge, unsigned log2) noexcept {
  const std::size_t wanted = receive.wanted();
  ChunkTransfer& transfer = receive.transfer;
  transfer.claims = claims;
  transfer.chunk = std::size_t{1} << log2;
  transfer.chunks = chunks_of(wanted, transfer.chunk);
  Header header;
  header.kind = PacketKind::clear;
  header.flags = static_cast<std::uint8_t>(packet_split | (huge ? packet_huge : 0) |
                                           (transfer.theirs ? packet_alone : 0) |
                                           (transfer.streamed ? packet_streamed : 0));
  header.detail = static_cast<std::uint16_t>(log2);
  header.tag = receive.sender_token;
  header.far.length = wanted;
  header.far.token = receive.token;
  header.far.place = own;
  the<Backlog>().send_control(*receive.source, header);
}

// Whether the sender, whose memory this side cannot map, can map this side's: then all chunks are
// the sender's.
bool Pulling::can_let_sender_copy(const Incoming& receive, std::uint16_t detail) noexcept {
  return receive.pieces.count == 1 &&
         network().access().can_be_mapped(*receive.source, receive.pieces.at[0]) &&
         claims_of(*receive.source, detail) != nullptr;
}

void Pulling::let_sender_copy(Incoming& receive, std::uint16_t detail, bool streamed) noexcept {
  bool huge = false;
  const MemoryPlace own =
      network().access().describe(*receive.source, receive.pieces.at, receive.pieces.count, &huge);
  receive.transfer = ChunkTransfer();
  receive.transfer.theirs = true;
  receive.transfer.streamed = streamed;
  receive.path = Path::mapped;
  receive.stage = Incoming::Stage::shared;
  Statistics::add(statistics().copies_in_flight, 1);
  share(receive, claims_of(*receive.source, detail), own, huge, most_mapped_chunk_log2);
}

// What is learned of the kernel's copies says nothing of those through mappings.
MessageWay Pulling::choose(Incoming& receive, MessageWays ways) noexcept {
  if (ways.fixed()) return ways.usual();
  Peer& peer = *receive.source;
  std::unique_ptr<Trials>& trials = receive.mappable ? peer.mapped_trials : peer.kernel_trials;
  if (!trials) trials = std::make_unique<Trials>();
  receive.trial = trials->of(receive.wanted());
  if (receive.trial == nullptr) return ways.usual();
  if (peer.tried++ != 0) peer.crowded = true;
  return receive.trial->choose(ways);
}

void Pulling::ask_for_pieces(Incoming& receive, std::size_t along) noexcept {
  receive.stage = Incoming::Stage::matched;
  receive.path = receive.source->off_node ? Path::offnode : Path::ring;
  receive.received = 0;
  if (receive.wanted() <= along) return;
  Header header;
  header.kind = PacketKind::clear;
  header.flags = receive.mappable ? packet_mappable : 0;
  header.tag = receive.sender_token;
  header.data = along;
  header.far.length = receive.wanted();
  header.far.token = receive.token;
  header.far.place = MemoryPlace();
  the<Backlog>().send_control(*receive.source, header);
}

void Pulling::on_data(Peer& peer, const ReceivedPacket& packet) noexcept {
  const Header& header = packet.header;
  Incoming* receive = the<Receiving>().incoming.find(header.tag);
  if (receive == nullptr || receive->source != &peer) return;  // it has failed meanwhile
  const std::size_t wanted = receive->wanted();
  if (receive->stage != Incoming::Stage::matched || header.data > wanted ||
      header.payload > wanted - header.data || header.payload == 0) {
    return the<Peers>().garbage(peer, "sends bytes that nobody asked for");
  }
  receive->received += header.payload;
  peer.due = receive->received < wanted;
  copy_out(receive->pieces, header.data, packet, header.payload, peer.due);
  if (!peer.due) {
    if (!receive->reply_due) receive->sender_token = 0;  // it knows when it has sent all
    finish_transfer(*receive, 0);
  }
}

void Pulling::on_share(Peer& peer, const Header& header) noexcept {
  Incoming* receive = the<Receiving>().incoming.find(header.tag);
  if (receive == nullptr || receive->source != &peer || receive->transfer.claims == nullptr) return;
  if (receive->transfer.theirs) {
    receive->transfer.theirs = false;
    if (header.detail == 0) {
      statistics().count_sent(receive->path, receive->wanted());
      return finish_transfer(*receive, 0);
    }
    Statistics::add(statistics().fallbacks, 1);
    Statistics::add(statistics().copies_in_flight, ~std::uint64_t{0});
    receive->transfer.claims = nullptr;
    return ask_for_pieces(*receive);
  }
  if (header.detail != 0) {
    // The sender cannot write here after all: this side copies all chunks, also those that the
    // sender had claimed.
    Statistics::add(statistics().fallbacks, 1);
    receive->transfer.claims = nullptr;
    receive->transfer.end = receive->transfer.chunks;
    receive->transfer.exhausted = false;
    receive->stage = Incoming::Stage::moving;
    return;
  }
  receive->shared_done = true;
}

bool Pulling::move(Incoming& receive) noexcept {
  ChunkTransfer& transfer = receive.transfer;
  DirectAccess& access = network().access();
  Peer& peer = *receive.source;
  const std::size_t wanted = receive.wanted();
  if (transfer.ticket != 0) {
    const int state = access.test(transfer.ticket);
    if (state == 0) return false;
    transfer.ticket = 0;
    if (peer.state == Peer::State::lost) {
      finish_transfer(receive, peer.loss());
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
    transfer.ticket = access.start(peer, DirectAccess::Direction::pull, part.at, part.count,
                                   transfer.place, offset, bytes, transfer.streamed);
    if (transfer.ticket < 0) {
      transfer.ticket = 0;
      transfer.chunk = 0;
    }
  } else {
    transfer.exhausted = true;
    // All chunks from the front were this side's: the others, if any, are the sender's.
    const bool all_mine = transfer.claims == nullptr || transfer.next >= transfer.chunks;
    statistics().count_sent(receive.path, wanted);
    if (all_mine || receive.shared_done) {
      finish_transfer(receive, 0);
    } else {
      receive.stage = Incoming::Stage::shared;
    }
    return true;
  }
  if (transfer.chunk == 0) {  // refused after all: the sender sends pieces
    Statistics::add(statistics().fallbacks, 1);
    Statistics::add(statistics().copies_in_flight, ~std::uint64_t{0});
    receive.unlink_motion();
    transfer.claims = nullptr;
    ask_for_pieces(receive);
  }
  return true;
}

void Pulling::note_arrival(const Incoming& receive, std::uint64_t taken_ns) noexcept {
  DirectAccess& access = network().access();
  const std::size_t bytes = receive.wanted();
  access.note_large(receive.path, bytes, taken_ns);
  if ((receive.path == Path::ring && !receive.mappable) ||
      (receive.path == Path::cma && !receive.huge))
    access.note_unmapped(receive.pieces.at, receive.pieces.count, bytes, false);
}

// The bytes are here, or will not come.
void Pulling::finish_transfer(Incoming& receive, int error) noexcept {
  if (receive.stage == Incoming::Stage::moving || receive.stage == Incoming::Stage::shared) {
    Statistics::add(statistics().copies_in_flight, ~std::uint64_t{0});
  }
  receive.unlink_motion();
  const std::uint64_t now = receive.begun_ns != 0 || receive.trial != nullptr ? now_ns() : 0;
  if (receive.begun_ns != 0 && error == 0) note_arrival(receive, now - receive.begun_ns);
  if (receive.trial != nullptr) {
    Peer& peer = *receive.source;
    receive.trial->done(now, !peer.crowded && error == 0);
    if (--peer.tried == 0) peer.crowded = false;
    receive.trial = nullptr;
  }
  if (receive.sender_token != 0) {
    // A message that is cut short has arrived, as far as its sender is concerned.
    the<Backlog>().send_finish(*receive.source, receive.sender_token, error);
  }
  the<Receiving>().finish_receive(receive, error);
}

}  // namespace haul::fabric
