// One turn of the matcher: what arrives, what moves, what leaves.
#include <algorithm>

#include "fabric/protocol/matcher_impl.hpp"

namespace haul::fabric {

namespace {

// Packets of one peer in a turn: the others get theirs.
constexpr unsigned turn_packets = 64;
constexpr std::uint32_t rare_turns = 32;
// How often a turn comes back to the endpoint's own packets before the others get theirs: enough
// for some thousand operations.
constexpr unsigned own_rounds = 32;

}  // namespace

bool Matcher::Impl::progress() noexcept {
  bool active = false;
  if (network.eager_turns || ++turns % rare_turns == 0) network.turn();
  if (network.news.load(std::memory_order_acquire) != 0) {
    take_news();
    active = true;
  }
  occupied = true;
  Peer* faulty = own_peer != nullptr ? serve_own(&active) : nullptr;
  for (std::size_t i = 0; i < sources.size() && faulty == nullptr; ++i) {
    if (!sources[i].inbox->ready()) continue;
    active = true;
    faulty = drain(sources[i]);
  }
  if (faulty != nullptr) drop_faulty(*faulty);
  for (Incoming* receive = moving.front(); receive != nullptr;) {
    Incoming* next = moving.after(*receive);
    if (move(*receive)) active = true;
    receive = next;
  }
  for (Outgoing* operation = sharing.front(); operation != nullptr;) {
    Outgoing* next = sharing.after(*operation);
    if (move(*operation)) active = true;
    operation = next;
  }
  if (!busy.empty()) active |= push_out_all();
  occupied = false;
  return active;
}

// What the program asks of its own endpoint comes before what others ask of it. Elsewhere such an
// accumulate has happened when the call returns, and programs are known to rely on that: they
// unlock by one, and do not flush before another process's fetch finds it.
Peer* Matcher::Impl::serve_own(bool* active) noexcept {
  for (unsigned round = 0; round < own_rounds; ++round) {
    bool moved = push_out(*own_peer);
    if (sources.front().inbox->ready()) {
      moved = true;
      if (Peer* faulty = drain(sources.front())) return faulty;
    }
    if (!moved) return nullptr;
    *active = true;
  }
  return nullptr;
}

bool Matcher::Impl::push_out_all() noexcept {
  std::vector<Peer*> now;
  now.swap(busy);
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

Peer* Matcher::Impl::drain(Source& source) noexcept {
  // handle() may add sources, which moves the list.
  Inbox& inbox = *source.inbox;
  Peer* const only = source.peer;
  ReceivedPacket packet;
  for (unsigned i = 0; i < turn_packets && inbox.ready(); ++i) {
    const Inbox::Got got = inbox.receive(packet);
    if (got == Inbox::Got::nothing) break;
    Peer* peer = only != nullptr ? only : peer_of(*packet.from);
    if (got == Inbox::Got::garbage) {
      garbage(*peer, "has written what is no packet");
    } else {
      if (peer->state != Peer::State::lost) handle(*peer, packet);
      inbox.release();
    }
    if (peer->fault != nullptr && peer->state != Peer::State::lost) return peer;
  }
  return nullptr;
}

void Matcher::Impl::handle(Peer& peer, const ReceivedPacket& packet) noexcept {
  switch (packet.header.kind) {
    case PacketKind::message: return on_message(peer, packet);
    case PacketKind::more: return on_more(peer, packet);
    case PacketKind::request: return on_request(peer, packet);
    case PacketKind::write: return on_write(peer, packet);
    case PacketKind::write_request: return on_write_request(peer, packet);
    case PacketKind::read: return on_read(peer, packet);
    case PacketKind::answer: return on_answer(peer, packet);
    case PacketKind::atomic: return on_atomic(peer, packet);
    case PacketKind::clear: return on_clear(peer, packet.header);
    case PacketKind::data: return on_data(peer, packet);
    case PacketKind::finish: return on_finish(peer, packet.header);
    case PacketKind::share: return on_share(peer, packet.header);
    case PacketKind::result: return on_result(peer, packet);
    case PacketKind::throttle: peer.throttled = packet.header.detail != 0; return;
    case PacketKind::none:
    case PacketKind::pad: break;
  }
  garbage(peer, "sends packets of an unknown kind");
}

}  // namespace haul::fabric
