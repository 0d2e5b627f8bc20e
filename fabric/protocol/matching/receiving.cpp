// Matching, as MPI wants it. A message goes to the receive that was posted first among those it
// matches, and a receive takes the message that came first among those it matches. Receives from
// one peer and receives from any source lie in two lists; `order` numbers them as they were posted,
// so that the older of two candidates wins. Lists that have become long are indexed
// (index/posted_index.hpp). A message that finds no receive is kept
// (unexpected_messages.hpp), and a new receive looks there before it is posted: so at any time no
// posted receive matches a kept message.
#include "fabric/protocol/matching/receiving.hpp"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include <algorithm>

#include "fabric/protocol/matching/matcher_parts.hpp"

namespace haul::fabric {

inline void Receiving::unpost(Incoming& posted) noexcept {
  posted.unlink_posted();
  if (posted.filed != 0) [[unlikely]]
    index_.remove(posted, the<Surroundings>().tag_hash);
}

ssize_t Receiving::receive(Peer* source, const ReceiveRequest& request) noexcept {
  if ((request.flags & FI_CLAIM) != 0 && (request.flags & FI_PEEK) == 0)
    return the<UnexpectedMessages>().claim(request);
  if (!sink().room(Event::receive)) return -FI_EAGAIN;
  if ((request.flags & FI_PEEK) != 0) return the<UnexpectedMessages>().peek(source, request);

  Incoming* posted = incoming.take();
  if (posted == nullptr) return -FI_EAGAIN;
  posted->stage = Incoming::Stage::posted;
  posted->tagged = request.tagged;
  posted->multi = posted->arriving = (request.flags & FI_MULTI_RECV) != 0;
  posted->wanted_entry = (request.flags & FI_COMPLETION) != 0;
  posted->context = request.context;
  posted->source = source;
  posted->order = ++next_order_;
  posted->tag = request.tag;
  posted->ignore = request.tagged ? request.ignore : ~std::uint64_t{0};
  posted->pieces = Pieces(request.pieces, request.count);

  const std::uint64_t token = posted->token;
  // (The buffer of a multi-receive is always there, and seldom for large messages.)
  if (BulkRequests::is_bulk(posted->pieces.bytes) && !posted->multi)
    the<BulkRequests>().note_bulk_awaited(token);
  while (Unexpected* message = the<UnexpectedMessages>().match_unexpected(
             source, posted->tagged, posted->tag, posted->ignore)) {
    const bool multi = posted->multi;
    if (multi && incoming.full()) break;  // no operation for its part: progress() makes room
    the<UnexpectedMessages>().take(*posted, *message);
    // A multi-receive goes on until its space is used up, and it is gone.
    if (!multi || incoming.find(token) == nullptr || posted->used_up) {
      return 0;
    }
  }
  if (source != nullptr && source->state == Peer::State::lost && source->error != 0) {
    const int error = source->error;
    incoming.give(posted);
    return -error;
  }
  PostedList& list =
      source != nullptr ? source->posted[posted->tagged] : posted_any_[posted->tagged];
  list.push_back(*posted);
  if (list.indexed != 0) [[unlikely]]
    index_.posted(list, *posted, the<Surroundings>().tag_hash);
  return 0;
}

int Receiving::cancel(void* context) noexcept {
  Incoming* found = nullptr;
  std::uint64_t passed = 0;
  // From both ends: programs cancel in the order of posting, or in the opposite one.
  const auto search = [&](PostedList& list) noexcept {
    Incoming *first = list.front(), *last = list.back();
    while (first != nullptr && found == nullptr) {
      if (first->context == context) found = first;
      if (found == nullptr && last->context == context) found = last;
      if (found != nullptr || first == last || list.after(*first) == last) break;
      passed += 2;
      first = list.after(*first);
      last = list.before(*last);
    }
  };
  for (const bool tagged : {true, false}) {
    search(posted_any_[tagged]);
    for (auto& [address, peer] : the<Peers>().peers) {
      if (found == nullptr) search(peer->posted[tagged]);
    }
  }
  Statistics::add(statistics().passed_over, passed);
  if (found == nullptr) return -FI_ENOENT;
  end_posted(*found, FI_ECANCELED);
  return 0;
}

// Of one that ends without a message.
Ending Receiving::posted_ending(const Incoming& posted) noexcept {
  return posted.posted_ending(receive_flags(posted.tagged, 0) | (posted.multi ? FI_MULTI_RECV : 0));
}

// A posted receive that will not be matched (any more). The buffer of a multi-receive goes back
// when the messages that are coming into it have ended.
void Receiving::end_posted(Incoming& posted, int error) noexcept {
  unpost(posted);
  if (posted.users != 0) {
    posted.used_up = true;
    posted.failure = static_cast<std::int16_t>(error);
    return;
  }
  const Ending ending = posted_ending(posted);
  incoming.give(&posted);
  the<Surroundings>().tell(ending, error);
}

void Receiving::fail_posted(PostedList (&posted)[2], int error) noexcept {
  for (PostedList& list : posted)
    while (Incoming* receive = list.front()) end_posted(*receive, error);
}

Incoming* Receiving::match_posted(Peer& peer, bool tagged, std::uint64_t tag) noexcept {
  const auto first = [&](PostedList& list, const Peer* source) noexcept {
    Incoming* front = list.front();
    if (front == nullptr || tags_match(front->tag, front->ignore, tag)) return front;
    return search(list, source, tag);
  };
  Incoming* directed = first(peer.posted[tagged], &peer);
  Incoming* any = first(posted_any_[tagged], nullptr);
  if (directed == nullptr || (any != nullptr && any->order < directed->order)) return any;
  return directed;
}

Incoming* Receiving::search(PostedList& list, const Peer* source, std::uint64_t tag) noexcept {
  const TagHash& hash = the<Surroundings>().tag_hash;
  std::uint64_t passed = 0;
  Incoming* at = nullptr;
  if (index_.covers(list)) {
    at = index_.first(source, tag, hash, &passed);
  } else {
    at = list.front();
    for (; at != nullptr && !tags_match(at->tag, at->ignore, tag); at = list.after(*at)) ++passed;
    if (passed > long_walk) index_.cover(list, hash);
  }
  Statistics::add(statistics().passed_over, passed);
  return at;
}

Incoming* Receiving::assign(Incoming& posted, Peer& peer, std::uint64_t tag, std::uint64_t data,
                            std::uint8_t flags, std::size_t length) noexcept {
  Incoming* receive = &posted;
  if (posted.multi) {
    receive = incoming.take();
    if (receive == nullptr) return nullptr;
    const std::size_t room = posted.pieces.bytes - posted.consumed;
    const std::size_t bytes = std::min(length, room);
    receive->tagged = posted.tagged;
    receive->multi = false;
    receive->pieces = posted.pieces.slice(posted.consumed, bytes);
    if (receive->pieces.count == 0) {
      auto* begin = static_cast<std::byte*>(posted.pieces.at[0].iov_base);
      receive->pieces = Pieces(begin + posted.consumed, 0);
    }
    receive->parent = posted.token;
    ++posted.users;
    // The next message begins on a cache line of its own.
    constexpr std::size_t line = 64;
    posted.consumed =
        std::min(posted.pieces.bytes, posted.consumed + (bytes + line - 1) / line * line);
    if (posted.pieces.bytes - posted.consumed <
        std::max<std::size_t>(limits().min_multi_receive, 1)) {
      posted.used_up = true;
      unpost(posted);
    }
  } else {
    unpost(*receive);
  }
  receive->arriving = true;
  receive->stage = Incoming::Stage::matched;
  receive->source = &peer;
  receive->length = length;
  receive->tag = tag;
  receive->ending = posted.posted_ending(receive_flags(receive->tagged, flags));
  receive->ending.tag = tag;
  receive->ending.data = (flags & packet_data) != 0 ? data : 0;
  return receive;
}

void Receiving::on_message(Peer& peer, const ReceivedPacket& packet) noexcept {
  const Header& header = packet.header;
  if ((header.flags & packet_parts) != 0) return the<PartedMessages>().begin_parts(peer, packet);
  const bool tagged = (header.flags & packet_tagged) != 0;
  Incoming* posted = match_posted(peer, tagged, tagged ? header.tag : 0);
  if (posted == nullptr) return the<UnexpectedMessages>().keep(peer, packet, true);
  if (!posted->multi && (header.flags & packet_reply) == 0) [[likely]] {
    return deliver(
        *posted, peer,
        {header.tag, header.data, header.flags, packet.payload, header.payload, packet.copies_out});
  }
  Incoming* receive = assign(*posted, peer, header.tag, header.data, header.flags, header.payload);
  if (receive == nullptr) return the<UnexpectedMessages>().keep(peer, packet, true);
  receive->pieces.scatter(0, packet.payload,
                          std::min<std::size_t>(header.payload, receive->pieces.bytes),
                          packet.copies_out);
  if ((header.flags & packet_reply) != 0) the<Backlog>().send_finish(peer, header.far.token, 0);
  finish_receive(*receive, 0);
}

void Receiving::deliver(Incoming& receive, Peer& peer, const WholeMessage& message) noexcept {
  const std::size_t room = receive.pieces.bytes;
  CompletionNotice completion;
  completion.event = Event::receive;
  completion.wanted = receive.wanted_entry;
  completion.context = receive.context;
  completion.flags = receive_flags(receive.tagged, message.flags);
  completion.length = std::min(message.bytes, room);
  completion.buffer = receive.pieces.count != 0 ? receive.pieces.at[0].iov_base : nullptr;
  completion.data = (message.flags & packet_data) != 0 ? message.data : 0;
  completion.tag = message.tag;
  completion.source = &peer;
  if (message.bytes > room) {
    completion.error = FI_ETRUNC;
    completion.overflow = message.bytes - room;
  } else {
    Statistics::add(statistics().received_messages, 1);
    Statistics::add(statistics().received_bytes, message.bytes);
  }
  receive.pieces.scatter(0, message.payload, completion.length, message.copies_out);
  unpost(receive);
  incoming.give(&receive);
  sink().complete(completion);
}

void Receiving::on_request(Peer& peer, const ReceivedPacket& packet) noexcept {
  const Header& header = packet.header;
  const bool along = (header.flags & packet_parts) != 0;
  if (along && !the<PartedMessages>().begin_along(peer, header)) return;
  const bool tagged = (header.flags & packet_tagged) != 0;
  Incoming* posted = match_posted(peer, tagged, tagged ? header.tag : 0);
  if (posted == nullptr) return the<UnexpectedMessages>().keep(peer, packet, false);
  Incoming* receive =
      assign(*posted, peer, header.tag, header.data, header.flags, header.far.length);
  if (receive == nullptr) return the<UnexpectedMessages>().keep(peer, packet, false);
  receive->sender_token = header.far.token;
  if (along) peer.parts_receive = receive->token;
  the<Pulling>().begin(*receive, header.far.place, header.flags, header.detail,
                       along ? in_parts_bytes : 0);
}

void Receiving::tell_received(const Incoming& receive, int error) noexcept {
  const std::size_t room = receive.pieces.bytes;
  CompletionNotice completion;
  completion.event = receive.ending.event;
  completion.wanted = receive.ending.wanted;
  completion.context = receive.ending.context;
  completion.flags = receive.ending.flags;
  completion.length = receive.wanted();
  completion.buffer = receive.pieces.count != 0 ? receive.pieces.at[0].iov_base : nullptr;
  completion.data = receive.ending.data;
  completion.tag = receive.ending.tag;
  completion.source = receive.source;
  completion.error = error;
  if (error == 0 && receive.length > room && receive.ending.event == Event::receive) {
    completion.error = FI_ETRUNC;
    completion.overflow = receive.length - room;
  }
  if (completion.error == 0 && receive.ending.event == Event::receive) {
    Statistics::add(statistics().received_messages, 1);
    Statistics::add(statistics().received_bytes, completion.length);
  }
  sink().complete(completion);
}

void Receiving::finish_receive(Incoming& receive, int error) noexcept {
  if (receive.awaited) --receive.source->awaited;
  Ending multi_ending;
  int multi_failure = 0;
  if (Incoming* multi = incoming.find(receive.parent)) {
    --multi->users;
    if (multi->used_up && multi->users == 0) {
      multi_failure = multi->failure;
      multi_ending = posted_ending(*multi);
      if (multi_failure == 0) {
        receive.ending.flags |= FI_MULTI_RECV;
        receive.ending.wanted = true;  // the program waits for its buffer
      }
      incoming.give(multi);
    }
  }
  if (receive.group) {
    std::shared_ptr<Group> group = std::move(receive.group);
    incoming.give(&receive);
    return the<Surroundings>().leave(std::move(group), error);
  }
  // The program did not ask for a peer's write, so it is not told of one that failed.
  const bool unasked = error != 0 && receive.ending.event == Event::remote_write;
  if (receive.ending.told && !unasked) tell_received(receive, error);
  incoming.give(&receive);
  if (multi_failure != 0) the<Surroundings>().tell(multi_ending, multi_failure);
}

}  // namespace haul::fabric
