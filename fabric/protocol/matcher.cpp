// The matcher's face.
#include "fabric/protocol/matcher.hpp"

#include "fabric/protocol/matcher_impl.hpp"

namespace haul::fabric {

Matcher::Matcher(Network& network, Sink& sink, Regions& regions,
                 const MatcherLimits& limits) noexcept
    : impl_(std::make_unique<Impl>(network, sink, regions, limits)) {}

Matcher::~Matcher() = default;

Peer* Matcher::peer(const Address& address) noexcept {
  return impl_->peer_of(address);
}

Peer* Matcher::find(const Address& address) noexcept {
  const auto found = impl_->peers.find(address);
  return found != impl_->peers.end() ? found->second.get() : nullptr;
}

fi_addr_t Matcher::name_of(const Peer& peer) noexcept {
  return peer.name;
}

void Matcher::rename(Peer& peer, fi_addr_t name) noexcept {
  peer.name = name;
}

const Address& Matcher::address_of(const Peer& peer) noexcept {
  return peer.address;
}

ssize_t Matcher::send(Peer& peer, const SendRequest& request) noexcept {
  return impl_->send(peer, request);
}

ssize_t Matcher::receive(Peer* source, const ReceiveRequest& request) noexcept {
  return impl_->receive(source, request);
}

ssize_t Matcher::rma(Peer& peer, const RmaRequest& request) noexcept {
  return impl_->rma(peer, request);
}

ssize_t Matcher::atomic(Peer& peer, const AtomicRequest& request) noexcept {
  return impl_->atomic(peer, request);
}

int Matcher::cancel(void* context) noexcept {
  return impl_->cancel(context);
}

void Matcher::set_min_multi_receive(std::size_t bytes) noexcept {
  impl_->limits.min_multi_receive = bytes;
}

std::size_t Matcher::min_multi_receive() const noexcept {
  return impl_->limits.min_multi_receive;
}

bool Matcher::progress() noexcept {
  return impl_->progress();
}

bool Matcher::flushed() const noexcept {
  for (const auto& [address, peer] : impl_->peers) {
    if (peer->state == Peer::State::lost) continue;
    if (!peer->control.empty() || !peer->pending.empty() || !peer->streaming.empty()) return false;
  }
  return true;
}

bool Matcher::idle() const noexcept {
  return impl_->busy.empty() && impl_->moving.empty() && impl_->sharing.empty();
}

const Statistics& Matcher::statistics() const noexcept {
  return impl_->statistics;
}

}  // namespace haul::fabric
