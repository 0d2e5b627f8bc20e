// Remote memory access: writes are messages whose receive buffer a key names; a read asks the
// target to send.
#include <rdma/fi_rma.h>

#include "fabric/protocol/matching/matcher_parts.hpp"

namespace haul::fabric {

ssize_t RemoteAccess::rma(Peer& peer, const RmaRequest& request) noexcept {
  if (const int error = the<Peers>().reach(peer); error != 0) return error;
  const Event event = request.is_write ? Event::write : Event::read;
  if (!sink().room(event)) return -FI_EAGAIN;
  const Pieces all(request.pieces, request.count);
  std::size_t targets_bytes = 0;
  for (std::size_t i = 0; i < request.target_count; ++i) targets_bytes += request.targets[i].len;
  if (targets_bytes != all.bytes || request.target_count == 0) return -FI_EINVAL;
  if (the<Sending>().outgoing.used() + request.target_count > limits().operations ||
      the<Receiving>().incoming.used() + request.target_count > limits().operations) {
    return -FI_EAGAIN;
  }

  const Ending ending =
      Ending::of(request, event, FI_RMA | (request.is_write ? FI_WRITE : FI_READ));
  const std::shared_ptr<Group> group = Group::of(request.target_count, ending);
  std::size_t offset = 0;
  for (std::size_t i = 0; i < request.target_count; ++i) {
    const fi_rma_iov& target = request.targets[i];
    const Pieces part = all.slice(offset, target.len);
    offset += target.len;
    const bool last = i + 1 == request.target_count;
    Outgoing* operation = nullptr;
    if (request.is_write) {
      operation = the<Sending>().new_outgoing(peer, PacketKind::write, part,
                                              (request.flags & FI_INJECT) != 0);
      operation->replied = true;
      operation->ending = ending;
      operation->group = group;
      // The data is for the target when all has been written: with the last part.
      if (last && (request.flags & FI_REMOTE_CQ_DATA) != 0) operation->flags = packet_data;
      operation->data = request.data;
    } else {
      Incoming* awaited = new_awaited(peer, part, target.len);
      awaited->ending = ending;
      awaited->group = group;
      if (BulkRequests::is_bulk(target.len)) the<BulkRequests>().note_bulk_awaited(awaited->token);
      operation = the<Sending>().new_outgoing(peer, PacketKind::read, Pieces(), false);
      operation->peer_token = awaited->token;
      operation->limit = target.len;
    }
    operation->tag = target.key;
    operation->address = target.addr;
    operation->fence = i == 0 && (request.flags & FI_FENCE) != 0;
    the<Sending>().start(*operation);
  }
  Statistics::add(statistics().rma_operations, 1);
  return 0;
}

Incoming* RemoteAccess::new_awaited(Peer& peer, const Pieces& pieces, std::size_t length) noexcept {
  Incoming* awaited = the<Receiving>().incoming.take();
  if (awaited == nullptr) return nullptr;
  awaited->begin(peer, pieces, length);
  awaited->awaited = true;
  ++peer.awaited;
  return awaited;
}

void RemoteAccess::tell_remote(Peer& peer, Event event, const Header& header, void* address,
                               std::size_t length) noexcept {
  CompletionNotice completion;
  completion.event = event;
  completion.wanted = (header.flags & packet_data) != 0;
  completion.flags = FI_RMA | (event == Event::remote_write ? FI_REMOTE_WRITE : FI_REMOTE_READ);
  if (completion.wanted) {
    completion.flags |= FI_REMOTE_CQ_DATA;
    completion.data = header.data;
  }
  completion.length = length;
  completion.buffer = address;
  completion.tag = header.tag;
  completion.source = &peer;
  sink().complete(completion);
}

void RemoteAccess::on_write(Peer& peer, const ReceivedPacket& packet) noexcept {
  const Header& header = packet.header;
  int error = 0;
  void* to = nullptr;
  if (header.payload != 0 || header.tag != 0) {
    to = regions().resolve(header.tag, header.far.place.address, header.payload, FI_REMOTE_WRITE,
                           &error);
  }
  if (to != nullptr) copy_bytes(to, packet.payload, header.payload, packet.copies_out);
  if (error == 0) tell_remote(peer, Event::remote_write, header, to, header.payload);
  the<Backlog>().send_finish(peer, header.far.token, error);
}

void RemoteAccess::on_write_request(Peer& peer, const ReceivedPacket& packet) noexcept {
  const Header& header = packet.header;
  if (the<Peers>().exhausts(peer)) return;
  if (header.payload != sizeof(MemoryPlace))
    return the<Peers>().garbage(peer, "asks to write from nowhere");
  MemoryPlace place;
  std::memcpy(&place, packet.payload, sizeof place);
  int error = 0;
  void* to = regions().resolve(header.tag, header.far.place.address, header.far.length,
                               FI_REMOTE_WRITE, &error);
  if (to == nullptr) return the<Backlog>().send_finish(peer, header.far.token, error);
  Incoming* receive = the<Receiving>().incoming.take_beyond_limit();
  receive->begin(peer, Pieces(to, header.far.length), header.far.length);
  receive->sender_token = header.far.token;
  receive->ending.told = true;
  receive->ending.event = Event::remote_write;
  receive->ending.flags = FI_RMA | FI_REMOTE_WRITE;
  receive->ending.tag = header.tag;
  if ((header.flags & packet_data) != 0) {
    receive->ending.wanted = true;
    receive->ending.flags |= FI_REMOTE_CQ_DATA;
    receive->ending.data = header.data;
  }
  // A write always ends with an answer.
  the<Pulling>().begin(*receive, place, static_cast<std::uint8_t>(header.flags | packet_reply),
                       header.detail);
}

void RemoteAccess::on_read(Peer& peer, const ReceivedPacket& packet) noexcept {
  const Header& header = packet.header;
  if (the<Peers>().exhausts(peer)) return;
  const std::size_t bytes = header.far.length;
  int error = 0;
  void* from = bytes == 0 ? nullptr
                          : regions().resolve(header.tag, header.far.place.address, bytes,
                                              FI_REMOTE_READ, &error);
  if (from == nullptr) {
    the<Backlog>().send_note(peer, PacketKind::result, header.far.token, error);
    if (error == 0) tell_remote(peer, Event::remote_read, header, nullptr, 0);
    return;
  }
  tell_remote(peer, Event::remote_read, header, from, bytes);
  Outgoing* answer = the<Sending>().outgoing.take_beyond_limit();
  the<Sending>().renew(*answer, peer, PacketKind::answer, Pieces(from, bytes));
  answer->peer_token = header.far.token;
  answer->tag = header.far.token;
  constexpr std::size_t few_bytes = std::size_t{16} << 10;
  if (bytes > few_bytes) {
    answer->replied = true;
    the<Sending>().start(*answer);
    return;
  }
  if (const int lost = the<Peers>().reach(peer); lost != 0)
    return the<Sending>().end(*answer, -lost);
  answer->limit = bytes;  // as pieces, at once
  answer->stage = Outgoing::Stage::streaming;
  ++peer.awaited;
  peer.streaming.push_back(*answer);
  the<Backlog>().mark_busy(peer);
  the<Backlog>().push_out(peer);
}

void RemoteAccess::on_answer(Peer& peer, const ReceivedPacket& packet) noexcept {
  const Header& header = packet.header;
  Incoming* awaited = the<Receiving>().incoming.find(header.tag);
  if (awaited == nullptr || awaited->source != &peer) {
    return the<Backlog>().send_finish(peer, header.far.token, FI_ECANCELED);
  }
  if (awaited->stage != Incoming::Stage::matched || !awaited->awaited ||
      awaited->ending.event != Event::read || header.far.length != awaited->length ||
      awaited->sender_token != 0) {
    return the<Peers>().garbage(peer, "answers what was not asked");
  }
  awaited->sender_token = header.far.token;
  the<Pulling>().begin(*awaited, header.far.place,
                       static_cast<std::uint8_t>(header.flags | packet_reply), header.detail);
}

}  // namespace haul::fabric
