#include "base/log.hpp"
#include "base/machine/clock.hpp"
#include "base/sync/backoff.hpp"
#include "fabric/protocol/matching/matcher_parts.hpp"

namespace haul::fabric {

namespace {

// How long the end of a peer waits for copies to it, all together.
constexpr std::uint64_t settle_ns = 2'000'000'000;

}  // namespace

Peer* Peers::peer_of(const Address& address) noexcept {
  std::unique_ptr<Peer>& slot = peers[address];
  if (!slot) {
    slot = std::make_unique<Peer>();
    slot->address = address;
    Statistics::add(statistics().peers, 1);
  }
  return slot.get();
}

int Peers::reach(Peer& peer) noexcept {
  if (peer.outbox != nullptr) return 0;
  if (peer.state == Peer::State::unknown) {
    peer.state = Peer::State::connecting;
    network().connect(peer.address);
    // In the middle of a packet or of other news the answer has to wait, because it may take away
    // what is being read.
    if (!occupied) take_news();
  }
  if (peer.state != Peer::State::lost) return 0;
  return -(peer.loss());
}

void Peers::take_news() noexcept {
  occupied = true;
  NetworkEvent event;
  while (network().next(event)) {
    Peer* peer =
        event.address.valid() && event.address.host != 0 ? peer_of(event.address) : nullptr;
    switch (event.what) {
      case NetworkEvent::What::opened:
        if (peer != nullptr && peer->state == Peer::State::lost) {
          network().drop(peer->address);
        } else if (peer != nullptr && network().self() != nullptr &&
                   peer->address == *network().self()) {
          the<Turns>().own_peer = peer;
          the<Turns>().sources.insert(the<Turns>().sources.begin(), {event.inbox, peer});
        } else {
          the<Turns>().sources.push_back({event.inbox, peer});
        }
        break;
      case NetworkEvent::What::connected:
        if (peer == nullptr || peer->state == Peer::State::lost) break;
        peer->outbox = event.outbox;
        peer->off_node = event.outbox->off_node;
        peer->state = Peer::State::connected;
        the<Backlog>().mark_busy(*peer);
        break;
      case NetworkEvent::What::refused:
        if (peer != nullptr) lose(*peer, event.error != 0 ? event.error : FI_ECONNREFUSED);
        break;
      case NetworkEvent::What::ended:
        if (peer != nullptr) hear_out(*peer, 0);
        break;
      case NetworkEvent::What::died:
        if (peer != nullptr) hear_out(*peer, event.error != 0 ? event.error : FI_ECONNRESET);
        break;
    }
  }
  occupied = false;
}

// What a peer sent before it went still counts.
void Peers::hear_out(Peer& peer, int error) noexcept {
  if (peer.state == Peer::State::lost) return;
  for (std::size_t i = 0; i < the<Turns>().sources.size(); ++i) {
    if (the<Turns>().sources[i].peer != &peer) continue;
    Inbox& inbox = *the<Turns>().sources[i].inbox;
    ReceivedPacket packet;
    while (peer.fault == nullptr && inbox.receive(packet) == Inbox::Got::packet) {
      the<Turns>().handle(peer, packet);
      inbox.release();
    }
  }
  lose(peer, error);
}

// error 0: it has closed in good order, so receives from it may wait on, for nothing.
void Peers::lose(Peer& peer, int error) noexcept {
  if (peer.state == Peer::State::lost) return;
  peer.state = Peer::State::lost;
  peer.error = error;
  const int told = error != 0 ? error : FI_ESHUTDOWN;
  std::erase_if(the<Turns>().sources,
                [&](const Turns::Source& source) { return source.peer == &peer; });
  if (the<Turns>().own_peer == &peer) the<Turns>().own_peer = nullptr;
  Statistics::add(statistics().peers, ~std::uint64_t{0});

  // Chunks that leave this memory. A copy that is not over in time only reads it.
  const std::uint64_t begin_ns = now_ns();
  const auto settle = [&](ChunkTransfer& transfer) noexcept {
    for (Backoff backoff; transfer.ticket != 0 && network().access().test(transfer.ticket) == 0 &&
                          now_ns() - begin_ns < settle_ns;
         backoff.pause()) {
    }
    transfer.ticket = 0;
  };
  peer.control.clear();
  the<Sending>().outgoing.each([&](Outgoing& operation) noexcept {
    if (operation.peer != &peer) return;
    settle(operation.transfer);
    the<Sending>().end(operation, told);
  });
  the<Receiving>().incoming.each([&](Incoming& receive) noexcept {
    if (receive.source != &peer || receive.stage == Incoming::Stage::posted) return;
    receive.sender_token = 0;
    // Memory that is being written goes back to the program when the copy is over: move() does it.
    if (receive.transfer.ticket != 0) return;
    the<Pulling>().finish_transfer(receive, told);
  });
  peer.outbox = nullptr;
  network().drop(peer.address);
  if (error == 0) return;
  the<Receiving>().fail_posted(peer, error);
  // When no peer is left, nobody can send to the receives from any source.
  for (const auto& [address, other] : peers) {
    if (other->state != Peer::State::lost) return;
  }
  the<Receiving>().fail_posted_any(error);
}

void Peers::garbage(Peer& peer, const char* what) noexcept {
  if (peer.fault == nullptr) peer.fault = what;
}

bool Peers::exhausts(Peer& peer) noexcept {
  const std::size_t most = 16 * limits().operations;
  const std::size_t under_way = the<Sending>().outgoing.used() + the<Receiving>().incoming.used();
  const std::size_t kept = statistics().unexpected_messages.load(std::memory_order_relaxed);
  if (under_way + kept < most) return false;
  garbage(peer, "asks for more than it takes");
  return true;
}

void Peers::drop_faulty(Peer& peer) noexcept {
  log(LogLevel::warning, "a peer %s; nothing more is exchanged with it", peer.fault);
  lose(peer, FI_EIO);
}

}  // namespace haul::fabric
