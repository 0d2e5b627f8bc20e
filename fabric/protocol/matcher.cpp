// The engine's face.
#include "fabric/protocol/matcher.hpp"

#include "fabric/protocol/matcher_impl.hpp"

namespace haul::fabric {

Engine::Engine(Network& network, Sink& sink, Regions& regions, const EngineLimits& limits) noexcept
    : impl_(std::make_unique<Impl>(network, sink, regions, limits)) {}

Engine::~Engine() = default;

Peer* Engine::peer(const Address& address) noexcept {
  return impl_->peer_of(address);
}

Peer* Engine::find(const Address& address) noexcept {
  const auto found = impl_->peers.find(address);
  return found != impl_->peers.end() ? found->second.get() : nullptr;
}

fi_addr_t Engine::name_of(const Peer& peer) noexcept {
  return peer.name;
}

void Engine::rename(Peer& peer, fi_addr_t name) noexcept {
  peer.name = name;
}

const Address& Engine::address_of(const Peer& peer) noexcept {
  return peer.address;
}

ssize_t Engine::send(Peer& peer, const SendRequest& request) noexcept {
  return impl_->send(peer, request);
}

ssize_t Engine::receive(Peer* source, const ReceiveRequest& request) noexcept {
  return impl_->receive(source, request);
}

ssize_t Engine::rma(Peer& peer, const RmaRequest& request) noexcept {
  return impl_->rma(peer, request);
}

ssize_t Engine::atomic(Peer& peer, const AtomicRequest& request) noexcept {
  return impl_->atomic(peer, request);
}

int Engine::cancel(void* context) noexcept {
  return impl_->cancel(context);
}

void Engine::set_min_multi_receive(std::size_t bytes) noexcept {
  impl_->limits.min_multi_receive = bytes;
}

std::size_t Engine::min_multi_receive() const noexcept {
  return impl_->limits.min_multi_receive;
}

bool Engine::progress() noexcept {
  return impl_->progress();
}

bool Engine::flushed() const noexcept {
  for (const auto& [address, peer] : impl_->peers) {
    if (peer->state == Peer::State::lost) continue;
    if (!peer->control.empty() || !peer->pending.empty() || !peer->streaming.empty()) return false;
  }
  return true;
}

bool Engine::idle() const noexcept {
  return impl_->busy.empty() && impl_->moving.empty() && impl_->sharing.empty();
}

const Statistics& Engine::statistics() const noexcept {
  return impl_->statistics;
}

}  // namespace haul::fabric
