#include "fabric/protocol/matching/unexpected_messages.hpp"

#include <rdma/fi_tagged.h>

#include <algorithm>

#include "fabric/protocol/matching/matcher_parts.hpp"

namespace haul::fabric {

namespace {

CompletionNotice completion_of(const Unexpected& message, const ReceiveRequest& request) noexcept {
  CompletionNotice completion;
  completion.event = Event::receive;
  completion.wanted = (request.flags & FI_COMPLETION) != 0;
  completion.context = request.context;
  completion.flags = receive_flags(message.tagged, message.flags);
  completion.length = message.length;
  completion.data = message.data;
  completion.tag = message.tag;
  completion.source = message.source;
  return completion;
}

}  // namespace

inline void UnexpectedMessages::unlink(Unexpected& message) noexcept {
  static_cast<Link<OfAll>&>(message).unlink();
  static_cast<Link<OfPeer>&>(message).unlink();
  if (index_.in_use()) [[unlikely]]
    index_.remove(message, the<Surroundings>().tag_hash);
}

void UnexpectedMessages::keep(Peer& peer, const ReceivedPacket& packet, bool whole) noexcept {
  const Header& header = packet.header;
  if (the<Peers>().exhausts(peer)) return;
  if (free_ == nullptr) {
    constexpr std::size_t slab = 64;
    slabs_.push_back(std::make_unique<Unexpected[]>(slab));
    for (std::size_t i = 0; i < slab; ++i) {
      slabs_.back()[i].next_free = free_;
      free_ = &slabs_.back()[i];
    }
  }
  Unexpected& message = *free_;
  free_ = message.next_free;
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
  if (whole) {
    std::byte* to = message.small;
    if (message.is_large()) {
      message.large = std::make_unique_for_overwrite<std::byte[]>(message.length);
      to = message.large.get();
    }
    copy_bytes(to, packet.payload, message.arrived, packet.copies_out);
    if (in_parts) peer.parts_message = &message;
  } else {
    static_assert(sizeof(MemoryPlace) <= sizeof message.small);
    std::memcpy(message.small, &header.far.place, sizeof(MemoryPlace));
  }
  kept_bytes_ += message.kept_bytes();
  peer.kept_bytes += message.kept_bytes();
  unexpected_[message.tagged].push_back(message);
  peer.unexpected[message.tagged].push_back(message);
  if (message.tagged && index_.in_use()) [[unlikely]]
    index_.add(message, the<Surroundings>().tag_hash);
  Statistics::add(statistics().unexpected_messages, 1);
  statistics().unexpected_bytes.store(kept_bytes_, std::memory_order_relaxed);
  if (kept_bytes_ > limits().unexpected_bytes / 2) throttle();
  if (kept_bytes_ > 2 * limits().unexpected_bytes)
    the<Peers>().garbage(peer, "sends on although it was told to wait");
}

// Asks the peers that have filled the memory for unexpected messages to send requests only; and,
// once half of that is free again, lets all go on.
void UnexpectedMessages::throttle() noexcept {
  const bool full = kept_bytes_ > limits().unexpected_bytes / 2;
  for (auto& [address, peer] : the<Peers>().peers) {
    if (full ? peer->told_throttle || peer->kept_bytes == 0 : !peer->told_throttle) continue;
    if (peer->state == Peer::State::lost) continue;
    peer->told_throttle = full;
    the<Backlog>().send_note(*peer, PacketKind::throttle, 0, full ? 1 : 0);
  }
}

void UnexpectedMessages::take(Incoming& posted, Unexpected& message) noexcept {
  Peer& peer = *message.source;
  if (message.whole && message.arrived == message.length && message.sender_token == 0 &&
      !posted.multi) [[likely]] {
    the<Receiving>().deliver(posted, peer,
                             {message.tag, message.data, message.flags, message.payload(),
                              message.length, HaulPrivateCopy::prefetching});
    return drop(message);
  }
  Incoming* receive = the<Receiving>().assign(posted, peer, message.tag, message.data,
                                              message.flags, message.length);
  if (receive == nullptr) return;  // a multi-receive, and no operation left for its part
  receive->sender_token = message.sender_token;
  if (message.whole && message.arrived < message.length) {
    receive->pieces.scatter(0, message.payload(),
                            std::min<std::size_t>(message.arrived, receive->pieces.bytes),
                            HaulPrivateCopy::prefetching);
    receive->received = message.arrived;
    peer.parts_receive = receive->token;
    message.sender_token = 0;  // the sender is told when all of it is here
    drop(message);
    if (peer.state == Peer::State::lost) {
      the<Receiving>().finish_receive(*receive, peer.loss());
    }
    return;
  }
  const bool whole = message.whole;
  const MemoryPlace place = message.place();
  const std::uint8_t flags = message.flags;
  const std::uint16_t detail = message.detail;
  if (whole) {
    receive->pieces.scatter(0, message.payload(),
                            std::min<std::size_t>(message.length, receive->pieces.bytes),
                            HaulPrivateCopy::prefetching);
    if (message.sender_token != 0) the<Backlog>().send_finish(peer, message.sender_token, 0);
  }
  message.sender_token = 0;  // the sender has been told, or the transfer will tell it
  drop(message);
  if (whole) {
    the<Receiving>().finish_receive(*receive, 0);
  } else {
    the<Pulling>().begin(*receive, place, flags, detail);
  }
}

// Forgets a message; a sender that waits for it is told that it was received.
void UnexpectedMessages::drop(Unexpected& message) noexcept {
  Peer& peer = *message.source;
  if (message.sender_token != 0) the<Backlog>().send_finish(peer, message.sender_token, 0);
  if (peer.parts_message == &message) peer.parts_message = nullptr;
  unlink(message);
  kept_bytes_ -= message.kept_bytes();
  peer.kept_bytes -= message.kept_bytes();
  if (message.is_large()) message.large.reset();
  message.next_free = free_;
  free_ = &message;
  Statistics::add(statistics().unexpected_messages, ~std::uint64_t{0});
  statistics().unexpected_bytes.store(kept_bytes_, std::memory_order_relaxed);
  if (kept_bytes_ < limits().unexpected_bytes / 4) throttle();
}

Unexpected* UnexpectedMessages::search(Peer* source, std::uint64_t tag,
                                       std::uint64_t ignore) noexcept {
  const TagHash& hash = the<Surroundings>().tag_hash;
  const KeptIndex::Search wanted{source, tag, ignore};
  const auto walk = [&](auto& list, std::uint64_t* passed) noexcept {
    Unexpected* at = list.front();
    for (; at != nullptr && !tags_match(tag, ignore, at->tag); at = list.after(*at)) ++*passed;
    return at;
  };
  std::uint64_t passed = 0;
  Unexpected* found = nullptr;
  if (!index_.first(wanted, hash, &found, &passed)) {
    found = source != nullptr ? walk(source->unexpected[true], &passed)
                              : walk(unexpected_[true], &passed);
  }
  Statistics::add(statistics().passed_over, passed);
  if (passed > long_walk) index_.cover(wanted, unexpected_[true], hash);
  return found;
}

// It looks at what is known before it makes progress: progress may let messages arrive and other
// receives end before the answer, and the program's next receive must meet the message that the
// peek has told of.
ssize_t UnexpectedMessages::peek(Peer* source, const ReceiveRequest& request) noexcept {
  const auto look = [&]() noexcept {
    return match_unexpected(source, request.tagged, request.tag, request.ignore);
  };
  Unexpected* message = look();
  // (The first turn after a quiet one takes one packet, the next what is there.)
  constexpr unsigned most_turns = 2;
  bool active = true;
  for (unsigned turn = 0; message == nullptr && active && turn < most_turns; ++turn) {
    active = the<Turns>().progress();
    message = look();
  }
  if (message == nullptr) {
    CompletionNotice missed;
    missed.event = Event::receive;
    missed.context = request.context;
    missed.flags = receive_flags(request.tagged, 0);
    missed.tag = request.tag;
    missed.error = FI_ENOMSG;
    sink().complete(missed);
    return 0;
  }
  const CompletionNotice found = completion_of(*message, request);
  if ((request.flags & FI_DISCARD) != 0) {
    drop(*message);
  } else if ((request.flags & FI_CLAIM) != 0) {
    unlink(*message);
    static_cast<fi_context*>(request.context)->internal[0] = message;
  }
  sink().complete(found);
  return 0;
}

// The message that a peek with FI_CLAIM put aside in the context.
ssize_t UnexpectedMessages::claim(const ReceiveRequest& request) noexcept {
  if (request.context == nullptr) return -FI_EINVAL;
  auto* context = static_cast<fi_context*>(request.context);
  auto* message = static_cast<Unexpected*>(context->internal[0]);
  if (message == nullptr) return -FI_EINVAL;
  if (!sink().room(Event::receive) || the<Receiving>().incoming.full()) return -FI_EAGAIN;
  context->internal[0] = nullptr;
  if ((request.flags & FI_DISCARD) != 0) {
    const CompletionNotice discarded = completion_of(*message, request);
    drop(*message);
    sink().complete(discarded);
    return 0;
  }
  // Put back where this receive finds it, and takes it, at once: first in its peer's list. No table
  // has to know it for that.
  Peer& peer = *message->source;
  unexpected_[message->tagged].push_front(*message);
  peer.unexpected[message->tagged].push_front(*message);
  ReceiveRequest exact = request;
  exact.flags &= ~static_cast<std::uint64_t>(FI_CLAIM);
  exact.tagged = message->tagged;
  exact.tag = message->tag;
  exact.ignore = 0;
  return the<Receiving>().receive(&peer, exact);
}

}  // namespace haul::fabric
