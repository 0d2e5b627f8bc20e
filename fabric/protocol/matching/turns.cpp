#include "fabric/protocol/matching/turns.hpp"

#include <utility>

#include "base/machine/cpu.hpp"
#include "fabric/protocol/matching/matcher_parts.hpp"

namespace haul::fabric {

namespace {

// Packets of one peer in a turn: the others get theirs.
constexpr unsigned turn_packets = 64;
constexpr std::uint32_t rare_turns = 32;
// How often a turn looks for the next part or piece of a message that has begun to come, all peers
// together: about two microseconds, in which a sender that runs writes it. A program's own turn
// costs more.
constexpr unsigned part_looks = 64;
// How often a turn comes back to the endpoint's own packets before the others get theirs: enough
// for some thousand operations.
constexpr unsigned own_rounds = 64;

}  // namespace

bool Turns::progress() noexcept {
  bool active = false;
  if (network().eager_turns || ++turns_ % rare_turns == 0) network().turn();
  if (network().news.load(std::memory_order_acquire) != 0) {
    the<Peers>().take_news();
    active = true;
  }
  the<Peers>().occupied = true;
  looks_left_ = part_looks;
  Peer* faulty = own_peer != nullptr ? serve_own(&active) : nullptr;
  for (std::size_t i = 0; i < sources.size() && faulty == nullptr; ++i) {
    if (!sources[i].inbox->ready()) {
      sources[i].quiet = true;
      continue;
    }
    active = true;
    faulty = drain(sources[i]);
  }
  if (faulty != nullptr) the<Peers>().drop_faulty(*faulty);
  for (Incoming* receive = the<Pulling>().moving.front(); receive != nullptr;) {
    Incoming* next = the<Pulling>().moving.after(*receive);
    if (the<Pulling>().move(*receive)) active = true;
    receive = next;
  }
  for (Outgoing* operation = the<Lending>().sharing.front(); operation != nullptr;) {
    Outgoing* next = the<Lending>().sharing.after(*operation);
    if (the<Lending>().move(*operation)) active = true;
    operation = next;
  }
  if (the<Backlog>().has_backlog()) active |= the<Backlog>().push_out_all();
  the<Peers>().occupied = false;
  return active;
}

// What the program asks of its own endpoint comes before what others ask of it. Elsewhere such an
// accumulate has happened when the call returns, and programs are known to rely on that: they
// unlock by one, and do not flush before another process's fetch finds it.
Peer* Turns::serve_own(bool* active) noexcept {
  for (unsigned round = 0; round < own_rounds; ++round) {
    bool moved = the<Backlog>().push_out(*own_peer);
    if (sources.front().inbox->ready()) {
      moved = true;
      if (Peer* faulty = drain(sources.front())) return faulty;
    }
    if (!moved) return nullptr;
    *active = true;
  }
  return nullptr;
}

Peer* Turns::drain(Source& source) noexcept {
  // handle() may add sources, which moves the list.
  Inbox& inbox = *source.inbox;
  Peer* const only = source.peer;
  ReceivedPacket packet;
  // One that came alone is likely to be followed by none until it has been answered, and a look for
  // one would take the line from the writer and wait for it.
  const unsigned most = std::exchange(source.quiet, false) ? 1 : turn_packets;
  for (unsigned i = 0; i < turn_packets && awaits(inbox, only); ++i) {
    const Inbox::Got got = inbox.receive(packet);
    if (got == Inbox::Got::nothing) break;
    Peer* peer = only != nullptr ? only : the<Peers>().peer_of(*packet.from);
    if (got == Inbox::Got::garbage) {
      the<Peers>().garbage(*peer, "has written what is no packet");
    } else {
      if (peer->state != Peer::State::lost) handle(*peer, packet);
      inbox.release();
    }
    if (peer->fault != nullptr && peer->state != Peer::State::lost) return peer;
    if (i + 1 >= most && (only == nullptr || !only->due)) break;
  }
  return nullptr;
}

bool Turns::awaits(const Inbox& inbox, Peer* only) noexcept {
  if (inbox.ready()) return true;
  if (only == nullptr || !only->due) return false;
  for (; looks_left_ > 0; --looks_left_) {
    cpu_relax();
    if (inbox.ready()) return true;
  }
  only->due = false;
  return false;
}

void Turns::handle(Peer& peer, const ReceivedPacket& packet) noexcept {
  switch (packet.header.kind) {
    case PacketKind::message: return the<Receiving>().on_message(peer, packet);
    case PacketKind::more: return the<PartedMessages>().on_more(peer, packet);
    case PacketKind::request: return the<Receiving>().on_request(peer, packet);
    case PacketKind::write: return the<RemoteAccess>().on_write(peer, packet);
    case PacketKind::write_request: return the<RemoteAccess>().on_write_request(peer, packet);
    case PacketKind::read: return the<RemoteAccess>().on_read(peer, packet);
    case PacketKind::answer: return the<RemoteAccess>().on_answer(peer, packet);
    case PacketKind::atomic: return the<RemoteAtomics>().on_atomic(peer, packet);
    case PacketKind::clear: return the<Lending>().on_clear(peer, packet.header);
    case PacketKind::data: return the<Pulling>().on_data(peer, packet);
    case PacketKind::finish: return the<Lending>().on_finish(peer, packet.header);
    case PacketKind::share: return the<Pulling>().on_share(peer, packet.header);
    case PacketKind::result: return the<RemoteAtomics>().on_result(peer, packet);
    case PacketKind::throttle: peer.throttled = packet.header.detail != 0; return;
    case PacketKind::none:
    case PacketKind::pad: break;
  }
  the<Peers>().garbage(peer, "sends packets of an unknown kind");
}

}  // namespace haul::fabric
