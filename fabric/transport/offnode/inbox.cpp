// Packets that have come from other nodes, checked before the protocol sees them.
#include "fabric/transport/offnode/inbox.hpp"

#include <cstring>

#include "fabric/transport/offnode/peer.hpp"
#include "fabric/transport/offnode/wire.hpp"

namespace haul::fabric {

OffnodeInbox::OffnodeInbox(OffnodeDirectory& directory) noexcept : directory_(directory) {
  ready_word = &filled_;
  ready_value = 1;
}

void OffnodeInbox::add(OffnodeCarrier& carrier, const std::byte* data, std::size_t bytes,
                       Landing& landing) noexcept {
  OffnodePeer* peer = nullptr;
  if (bytes >= head_bytes) {
    OffnodePrefix prefix;
    std::memcpy(&prefix, data, sizeof prefix);
    peer = directory_.sender(prefix.id);
  }
  if (peer == nullptr) {
    carrier.let_go(landing);
    return;
  }
  ++peer->queued;
  arrivals_.push_back({&carrier, data, bytes, &landing, peer});
  filled_.store(1, std::memory_order_relaxed);
}

Inbox::Got OffnodeInbox::receive(ReceivedPacket& packet) noexcept {
  while (!arrivals_.empty() && arrivals_.front().peer->state == OffnodePeer::State::dropped) {
    let_go_first();
  }
  if (arrivals_.empty()) return Got::nothing;
  const Arrival& arrival = arrivals_.front();
  OffnodePrefix prefix;
  std::memcpy(&prefix, arrival.data, sizeof prefix);
  std::memcpy(static_cast<void*>(&packet.header), arrival.data + sizeof prefix,
              sizeof packet.header);
  packet.from = &arrival.peer->address;
  if (prefix.number != arrival.peer->arrived) return Got::garbage;
  const Header& header = packet.header;
  if ((header.flags & packet_inlined) != 0) {
    if (header.payload > inline_capacity) return Got::garbage;
    packet.payload = reinterpret_cast<const std::byte*>(packet.header.bytes);
  } else {
    if (header.payload > arrival.bytes - head_bytes) return Got::garbage;
    packet.payload = arrival.data + head_bytes;
  }
  return Got::packet;
}

void OffnodeInbox::release() noexcept {
  if (arrivals_.empty()) return;
  ++arrivals_.front().peer->arrived;
  let_go_first();
}

void OffnodeInbox::let_go_first() noexcept {
  const Arrival arrival = arrivals_.front();
  arrivals_.pop_front();
  --arrival.peer->queued;
  if (arrivals_.empty()) filled_.store(0, std::memory_order_relaxed);
  arrival.carrier->let_go(*arrival.landing);
}

void OffnodeInbox::clear() noexcept {
  while (!arrivals_.empty()) let_go_first();
}

}  // namespace haul::fabric
