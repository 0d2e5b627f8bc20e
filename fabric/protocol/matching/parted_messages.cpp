#include "fabric/protocol/matching/parted_messages.hpp"

#include <algorithm>

#include "fabric/protocol/copy_out.hpp"
#include "fabric/protocol/matching/matcher_parts.hpp"

namespace haul::fabric {

// The first part of a message decides which receive it goes to.
void PartedMessages::begin_parts(Peer& peer, const ReceivedPacket& packet) noexcept {
  const Header& header = packet.header;
  const std::size_t length = header.far.length;
  if (peer.parts_left != 0 || length <= inline_capacity || length > in_parts_bytes ||
      header.payload >= length || (header.flags & packet_inlined) != 0) {
    return the<Peers>().garbage(peer, "begins a message that cannot be");
  }
  peer.parts_left = length - header.payload;
  peer.due = true;
  peer.parts_along = false;
  peer.parts_receive = 0;
  peer.parts_message = nullptr;
  const bool tagged = (header.flags & packet_tagged) != 0;
  Incoming* posted = the<Receiving>().match_posted(peer, tagged, tagged ? header.tag : 0);
  Incoming* receive = posted != nullptr ? the<Receiving>().assign(*posted, peer, header.tag,
                                                                  header.data, header.flags, length)
                                        : nullptr;
  if (receive == nullptr) return the<UnexpectedMessages>().keep(peer, packet, true);
  copy_out(receive->pieces, 0, packet, std::min<std::size_t>(header.payload, receive->pieces.bytes),
           true);
  receive->received = header.payload;
  if ((header.flags & packet_reply) != 0) receive->sender_token = header.far.token;
  peer.parts_receive = receive->token;
}

bool PartedMessages::begin_along(Peer& peer, const Header& request) noexcept {
  if (peer.parts_left != 0 || request.far.length <= in_parts_bytes) {
    the<Peers>().garbage(peer, "asks for a message that cannot be");
    return false;
  }
  peer.parts_left = in_parts_bytes;
  peer.due = true;
  peer.parts_receive = 0;
  peer.parts_message = nullptr;
  peer.parts_along = true;
  return true;
}

void PartedMessages::on_more(Peer& peer, const ReceivedPacket& packet) noexcept {
  const std::size_t bytes = packet.header.payload;
  if (bytes == 0 || bytes > peer.parts_left)
    return the<Peers>().garbage(peer, "sends more than it said");
  peer.parts_left -= bytes;
  peer.due = peer.parts_left != 0;
  if (Unexpected* message = peer.parts_message) {
    copy_bytes(message->large.get() + message->arrived, packet.payload, bytes, packet.copies_out);
    message->arrived += static_cast<std::uint32_t>(bytes);
    if (peer.parts_left == 0) peer.parts_message = nullptr;
    return;
  }
  Incoming* receive = the<Receiving>().incoming.find(peer.parts_receive);
  if (receive == nullptr) return;  // it was discarded
  if (receive->stage != Incoming::Stage::matched)
    return the<Peers>().garbage(peer, "sends what it lets be copied");
  if (receive->received < receive->pieces.bytes) {
    copy_out(receive->pieces, receive->received, packet,
             std::min(bytes, receive->pieces.bytes - receive->received), peer.due);
  }
  receive->received += bytes;
  if (peer.parts_along) {
    if (receive->received >= receive->wanted()) the<Pulling>().finish_transfer(*receive, 0);
    return;
  }
  if (peer.parts_left != 0) return;
  if (receive->sender_token != 0) the<Backlog>().send_finish(peer, receive->sender_token, 0);
  the<Receiving>().finish_receive(*receive, 0);
}

}  // namespace haul::fabric
