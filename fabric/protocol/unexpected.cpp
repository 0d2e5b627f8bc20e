// Messages that come before their receives: kept within bounds, and messages that come in parts.
#include <rdma/fi_endpoint.h>

#include <algorithm>

#include "fabric/protocol/matcher_impl.hpp"

namespace haul::fabric {

void Matcher::Impl::keep(Peer& peer, const ReceivedPacket& packet, bool whole) noexcept {
  const Header& header = packet.header;
  if (exhausts(peer)) return;
  if (free_unexpected == nullptr) {
    constexpr std::size_t slab = 64;
    unexpected_slabs.push_back(std::make_unique<Unexpected[]>(slab));
    for (std::size_t i = 0; i < slab; ++i) {
      unexpected_slabs.back()[i].next_free = free_unexpected;
      free_unexpected = &unexpected_slabs.back()[i];
    }
  }
  Unexpected& message = *free_unexpected;
  free_unexpected = message.next_free;
  message.source = &peer;
  message.tagged = (header.flags & packet_tagged) != 0;
  message.whole = whole;
  message.flags = header.flags;
  message.detail = header.detail;
  message.tag = message.tagged ? header.tag : 0;
  message.data = (header.flags & packet_data) != 0 ? header.data : 0;
  const bool in_parts = whole && (header.flags & packet_parts) != 0;
  message.length = whole && !in_parts ? header.payload : header.far.length;
  message.arrived = header.payload;
  message.sender_token = whole && (header.flags & packet_reply) == 0 ? 0 : header.far.token;
  message.place = whole ? MemoryPlace() : header.far.place;
  if (whole) {
    std::byte* to = message.small;
    if (message.length > sizeof message.small) {
      message.large = std::make_unique_for_overwrite<std::byte[]>(message.length);
      to = message.large.get();
    }
    copy_bytes(to, packet.payload, message.arrived);
    if (in_parts) peer.parts_message = &message;
  }
  message.kept = whole ? message.length : 0;
  kept_bytes += message.kept;
  peer.kept_bytes += message.kept;
  unexpected[message.tagged].push_back(message);
  peer.unexpected[message.tagged].push_back(message);
  Statistics::add(statistics.unexpected_messages, 1);
  statistics.unexpected_bytes.store(kept_bytes, std::memory_order_relaxed);
  if (kept_bytes > limits.unexpected_bytes / 2) throttle();
  if (kept_bytes > 2 * limits.unexpected_bytes)
    garbage(peer, "sends on although it was told to wait");
}

// Asks who has filled the memory for unexpected messages to send requests only; and, once half of
// that is free again, lets all go on.
void Matcher::Impl::throttle() noexcept {
  const bool full = kept_bytes > limits.unexpected_bytes / 2;
  for (auto& [address, peer] : peers) {
    if (full ? peer->told_throttle || peer->kept_bytes == 0 : !peer->told_throttle) continue;
    if (peer->state == Peer::State::lost) continue;
    peer->told_throttle = full;
    Header header;
    header.kind = PacketKind::throttle;
    header.detail = full ? 1 : 0;
    send_control(*peer, header);
  }
}

void Matcher::Impl::take(Incoming& posted, Unexpected& message) noexcept {
  Peer& peer = *message.source;
  Incoming* receive =
      assign(posted, peer, message.tag, message.data, message.flags, message.length);
  if (receive == nullptr) return;  // a multi-receive, and no operation left for its part
  receive->sender_token = message.sender_token;
  if (message.whole && message.arrived < message.length) {
    receive->pieces.scatter(0, message.payload(), std::min(message.arrived, receive->pieces.bytes));
    receive->received = message.arrived;
    peer.parts_receive = receive->token;
    message.sender_token = 0;  // is told when all is here
    drop(message);
    if (peer.state == Peer::State::lost) {
      finish_receive(*receive, peer.error != 0 ? peer.error : FI_ESHUTDOWN);
    }
    return;
  }
  const bool whole = message.whole;
  const MemoryPlace place = message.place;
  const std::uint8_t flags = message.flags;
  const std::uint16_t detail = message.detail;
  if (whole) {
    receive->pieces.scatter(0, message.payload(),
                            std::min<std::size_t>(message.length, receive->pieces.bytes));
    if (message.sender_token != 0) send_finish(peer, message.sender_token, 0);
  }
  message.sender_token = 0;  // told already, or by the transfer
  drop(message);
  if (whole) {
    finish_receive(*receive, 0);
  } else {
    begin(*receive, place, flags, detail);
  }
}

// Forgets a message; a sender that waits is told that it was received.
void Matcher::Impl::drop(Unexpected& message) noexcept {
  Peer& peer = *message.source;
  if (message.sender_token != 0) send_finish(peer, message.sender_token, 0);
  if (peer.parts_message == &message) peer.parts_message = nullptr;
  static_cast<Link<OfAll>&>(message).unlink();
  static_cast<Link<OfPeer>&>(message).unlink();
  kept_bytes -= message.kept;
  peer.kept_bytes -= message.kept;
  message.large.reset();
  message.next_free = free_unexpected;
  free_unexpected = &message;
  Statistics::add(statistics.unexpected_messages, ~std::uint64_t{0});
  statistics.unexpected_bytes.store(kept_bytes, std::memory_order_relaxed);
  if (kept_bytes < limits.unexpected_bytes / 4) throttle();
}

// The first part of a message: what its receive is, is settled now.
void Matcher::Impl::begin_parts(Peer& peer, const ReceivedPacket& packet) noexcept {
  const Header& header = packet.header;
  const std::size_t length = header.far.length;
  if (peer.parts_left != 0 || length <= inline_capacity || length > in_parts_bytes ||
      header.payload >= length || (header.flags & packet_inlined) != 0) {
    return garbage(peer, "begins a message that cannot be");
  }
  peer.parts_left = length - header.payload;
  peer.parts_receive = 0;
  peer.parts_message = nullptr;
  const bool tagged = (header.flags & packet_tagged) != 0;
  Incoming* posted = match_posted(peer, tagged, tagged ? header.tag : 0);
  Incoming* receive = posted != nullptr
                          ? assign(*posted, peer, header.tag, header.data, header.flags, length)
                          : nullptr;
  if (receive == nullptr) return keep(peer, packet, true);
  receive->pieces.scatter(0, packet.payload,
                          std::min<std::size_t>(header.payload, receive->pieces.bytes));
  receive->received = header.payload;
  if ((header.flags & packet_reply) != 0) receive->sender_token = header.far.token;
  peer.parts_receive = receive->token;
}

void Matcher::Impl::on_more(Peer& peer, const ReceivedPacket& packet) noexcept {
  const std::size_t bytes = packet.header.payload;
  if (bytes == 0 || bytes > peer.parts_left) return garbage(peer, "sends more than it said");
  peer.parts_left -= bytes;
  if (Unexpected* message = peer.parts_message) {
    copy_bytes(message->large.get() + message->arrived, packet.payload, bytes);
    message->arrived += bytes;
    if (peer.parts_left == 0) peer.parts_message = nullptr;
    return;
  }
  Incoming* receive = incoming.find(peer.parts_receive);
  if (receive == nullptr) return;  // it was discarded
  if (receive->stage != Incoming::Stage::matched)
    return garbage(peer, "sends what it lets be copied");
  if (receive->received < receive->pieces.bytes) {
    receive->pieces.scatter(receive->received, packet.payload,
                            std::min(bytes, receive->pieces.bytes - receive->received));
  }
  receive->received += bytes;
  if (peer.parts_left != 0) return;
  if (receive->sender_token != 0) send_finish(peer, receive->sender_token, 0);
  finish_receive(*receive, 0);
}

}  // namespace haul::fabric
