#include "fabric/protocol/matching/backlog.hpp"

#include <algorithm>

#include "fabric/protocol/matching/matcher_parts.hpp"

namespace haul::fabric {

namespace {

// The most pieces for one peer in a turn: everything else waits as long as they take.
constexpr std::size_t turn_bytes = std::size_t{256} << 10;

// Sends a packet without payload; false if there is no room.
bool send_now(Outbox& outbox, const Header& header) noexcept {
  const Outbox::Slot slot = outbox.reserve(0, Outbox::Lane::control);
  if (slot.header == nullptr) return false;
  std::memcpy(static_cast<void*>(slot.header), &header, offsetof(Header, ready));
  outbox.commit();
  return true;
}

}  // namespace

bool Backlog::stream(Peer& peer) noexcept {
  std::size_t budget = turn_bytes;
  const std::size_t before = budget;
  while (Outgoing* operation = peer.streaming.front()) {
    const std::size_t left = operation->limit - operation->offset;
    const std::size_t bytes = std::min(left, peer.outbox->piece_bytes);
    if (bytes > budget) break;
    const Outbox::Slot slot = peer.outbox->reserve(bytes, Outbox::Lane::bulk);
    if (slot.header == nullptr) break;
    operation->pieces.gather(operation->offset, slot.payload, bytes, peer.outbox->copies_in);
    Header& header = *slot.header;
    header.kind = PacketKind::data;
    header.flags = 0;
    header.detail = 0;
    header.payload = static_cast<std::uint32_t>(bytes);
    header.tag = operation->peer_token;
    header.data = operation->offset;
    peer.outbox->commit();
    budget -= bytes;
    operation->offset += bytes;
    operation->unlink_queue();
    if (operation->offset < operation->limit) {
      peer.streaming.push_back(*operation);  // messages take turns
      continue;
    }
    statistics().count_sent(peer.off_node ? Path::offnode : Path::ring, operation->limit);
    if (operation->replied) {
      operation->stage = Outgoing::Stage::waiting;
    } else {
      the<Sending>().end(*operation, 0);
    }
  }
  return budget != before;
}

void Backlog::send_control(Peer& peer, const Header& header) noexcept {
  if (the<Peers>().reach(peer) != 0) return;
  if (peer.outbox != nullptr && peer.control.empty() && send_now(*peer.outbox, header)) return;
  peer.control.push_back(header);
  mark_busy(peer);
}

void Backlog::send_note(Peer& peer, PacketKind kind, std::uint64_t token, int detail,
                        std::uint64_t data) noexcept {
  Header header;
  header.kind = kind;
  header.tag = token;
  header.detail = static_cast<std::uint16_t>(detail);
  header.data = data;
  send_control(peer, header);
}

bool Backlog::push_out(Peer& peer) noexcept {
  if (peer.outbox == nullptr) return false;
  std::size_t sent = 0;
  while (sent < peer.control.size() && send_now(*peer.outbox, peer.control[sent])) ++sent;
  peer.control.erase(peer.control.begin(),
                     peer.control.begin() + static_cast<std::ptrdiff_t>(sent));
  bool active = sent != 0;
  while (Outgoing* operation = peer.pending.front()) {
    if (operation->fence && peer.awaited != 0) break;
    if (!the<Sending>().first_packet(*operation)) break;
    active = true;
  }
  return stream(peer) || active;
}

bool Backlog::push_out_all() noexcept {
  std::vector<Peer*> now;
  now.swap(busy_);
  bool active = false;
  for (Peer* peer : now) {
    peer->busy = false;
    active |= push_out(*peer);
    if (peer->state == Peer::State::lost) continue;
    if (!peer->control.empty() || !peer->pending.empty() || !peer->streaming.empty()) {
      mark_busy(*peer);
    }
  }
  return active;
}

void Backlog::mark_busy(Peer& peer) noexcept {
  if (peer.busy) return;
  peer.busy = true;
  busy_.push_back(&peer);
}

}  // namespace haul::fabric
