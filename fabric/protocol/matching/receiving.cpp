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

ssize_t Receiving::receive(Peer* source, const ReceiveRequest& request) noexcept {
  if ((request.flags & FI_CLAIM) != 0 && (request.flags & FI_PEEK) == 0)
    return the<UnexpectedMessages>().claim(request);
  if (!sink().room(Event::receive)) return -FI_EAGAIN;
  if ((request.flags & FI_PEEK) != 0) return the<UnexpectedMessages>().peek(source, request);

  Incoming* posted = incoming.take();
  if (posted == nullptr) return -FI_EAGAIN;
  posted->renew();
  posted->tagged = request.tagged;
  posted->multi = (request.flags & FI_MULTI_RECV) != 0;
  posted->source = source;
  posted->order = ++next_order_;
  posted->tag = request.tag;
  posted->ignore = request.tagged ? request.ignore : ~std::uint64_t{0};
  posted->pieces = Pieces(request.pieces, request.count);
  posted->ending = Ending::of(request, Event::receive, 0);

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
  const auto search = [&](PostedList& list) noexcept {
    for (Incoming* at = list.front(); at != nullptr && found == nullptr; at = list.after(*at)) {
      if (at->ending.context == context) found = at;
    }
  };
  for (const bool tagged : {true, false}) {
    search(posted_any_[tagged]);
    for (auto& [address, peer] : the<Peers>().peers) {
      if (found == nullptr) search(peer->posted[tagged]);
    }
  }
  if (found == nullptr) return -FI_ENOENT;
  end_posted(*found, FI_ECANCELED);
  return 0;
}

// A posted receive that will not be matched (any more). The buffer of a multi-receive goes back
// when the messages that are coming into it have ended.
void Receiving::end_posted(Incoming& posted, int error) noexcept {
  posted.ending.flags = receive_flags(posted.tagged, 0);
  if (posted.multi) posted.ending.flags |= FI_MULTI_RECV;
  unpost(posted);
  if (posted.users != 0) {
    posted.used_up = true;
    posted.failure = error;
    return;
  }
  const Ending ending = posted.ending;
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
    receive->renew();
    receive->tagged = posted.tagged;
    receive->pieces = posted.pieces.slice(posted.consumed, bytes);
    if (receive->pieces.count == 0) {
      auto* begin = static_cast<std::byte*>(posted.pieces.at[0].iov_base);
      receive->pieces = Pieces(begin + posted.consumed, 0);
    }
    receive->ending = posted.ending;
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
    receive->parent = 0;
  }
  receive->stage = Incoming::Stage::matched;
  receive->source = &peer;
  receive->length = length;
  receive->received = 0;
  receive->sender_token = 0;
  receive->tag = tag;
  receive->ending.tag = tag;
  receive->ending.data = (flags & packet_data) != 0 ? data : 0;
  receive->ending.flags = receive_flags(receive->tagged, flags);
  return receive;
}

void Receiving::on_message(Peer& peer, const ReceivedPacket& packet) noexcept {
  const Header& header = packet.header;
  if ((header.flags & packet_parts) != 0) return the<PartedMessages>().begin_parts(peer, packet);
  const bool tagged = (header.flags & packet_tagged) != 0;
  Incoming* posted = match_posted(peer, tagged, tagged ? header.tag : 0);
  if (posted == nullptr) return the<UnexpectedMessages>().keep(peer, packet, true);
  if (!posted->multi && (header.flags & packet_reply) == 0) [[likely]] {
    return deliver(*posted, peer, packet);
  }
  Incoming* receive = assign(*posted, peer, header.tag, header.data, header.flags, header.payload);
  if (receive == nullptr) return the<UnexpectedMessages>().keep(peer, packet, true);
  receive->pieces.scatter(0, packet.payload,
                          std::min<std::size_t>(header.payload, receive->pieces.bytes));
  if ((header.flags & packet_reply) != 0) the<Backlog>().send_finish(peer, header.far.token, 0);
  finish_receive(*receive, 0);
}

// A whole message into a plain receive: what most of them are.
void Receiving::deliver(Incoming& receive, Peer& peer, const ReceivedPacket& packet) noexcept {
  const Header& header = packet.header;
  const std::size_t room = receive.pieces.bytes;
  CompletionNotice completion;
  completion.event = Event::receive;
  completion.wanted = receive.ending.wanted;
  completion.context = receive.ending.context;
  completion.flags = receive_flags(receive.tagged, header.flags);
  completion.length = std::min<std::size_t>(header.payload, room);
  completion.buffer = receive.pieces.count != 0 ? receive.pieces.at[0].iov_base : nullptr;
  completion.data = (header.flags & packet_data) != 0 ? header.data : 0;
  completion.tag = header.tag;
  completion.source = &peer;
  if (header.payload > room) {
    completion.error = FI_ETRUNC;
    completion.overflow = header.payload - room;
  } else {
    Statistics::add(statistics().received_messages, 1);
    Statistics::add(statistics().received_bytes, header.payload);
  }
  receive.pieces.scatter(0, packet.payload, completion.length);
  unpost(receive);
  incoming.give(&receive);
  sink().complete(completion);
}

void Receiving::on_request(Peer& peer, const ReceivedPacket& packet) noexcept {
  const Header& header = packet.header;
  const bool tagged = (header.flags & packet_tagged) != 0;
  Incoming* posted = match_posted(peer, tagged, tagged ? header.tag : 0);
  if (posted == nullptr) return the<UnexpectedMessages>().keep(peer, packet, false);
  Incoming* receive =
      assign(*posted, peer, header.tag, header.data, header.flags, header.far.length);
  if (receive == nullptr) return the<UnexpectedMessages>().keep(peer, packet, false);
  receive->sender_token = header.far.token;
  the<Pulling>().begin(*receive, header.far.place, header.flags, header.detail);
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
      multi_ending = multi->ending;
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
