// The matcher's face.
#include "fabric/protocol/matcher.hpp"

#include "fabric/protocol/matching/matcher_parts.hpp"

namespace haul::fabric {

Matcher::Matcher(Network& network, Sink& sink, Regions& regions, const MatcherLimits& limits,
                 const TagSalt& salt) noexcept
    : parts_(std::make_unique<MatcherParts>(network, sink, regions, limits, salt)) {}

Matcher::~Matcher() = default;

Peer* Matcher::peer(const Address& address) noexcept {
  return parts_->peer_of(address);
}

Peer* Matcher::find(const Address& address) noexcept {
  const auto found = parts_->peers.find(address);
  return found != parts_->peers.end() ? found->second.get() : nullptr;
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
  return parts_->send(peer, request);
}

ssize_t Matcher::receive(Peer* source, const ReceiveRequest& request) noexcept {
  return parts_->receive(source, request);
}

ssize_t Matcher::rma(Peer& peer, const RmaRequest& request) noexcept {
  return parts_->rma(peer, request);
}

ssize_t Matcher::atomic(Peer& peer, const AtomicRequest& request) noexcept {
  return parts_->atomic(peer, request);
}

int Matcher::cancel(void* context) noexcept {
  return parts_->cancel(context);
}

void Matcher::set_min_multi_receive(std::size_t bytes) noexcept {
  parts_->Surroundings::limits.min_multi_receive = bytes;
}

std::size_t Matcher::min_multi_receive() const noexcept {
  return parts_->Surroundings::limits.min_multi_receive;
}

bool Matcher::progress() noexcept {
  return parts_->progress();
}

bool Matcher::flushed() const noexcept {
  for (const auto& [address, peer] : parts_->peers) {
    if (peer->state == Peer::State::lost) continue;
    if (!peer->control.empty() || !peer->pending.empty() || !peer->streaming.empty()) return false;
  }
  return true;
}

bool Matcher::idle() const noexcept {
  return !parts_->has_backlog() && parts_->moving.empty() && parts_->sharing.empty();
}

std::uint64_t Matcher::left_ns() const noexcept {
  const bool waits = parts_->has_backlog() || !parts_->sharing.empty();
  return waits ? 0 : parts_->Pulling::left_ns();
}

const std::uint64_t& Matcher::bulk_requests() const noexcept {
  return parts_->BulkRequests::noted;
}

bool Matcher::expects_bulk() noexcept {
  return !idle() || parts_->any_bulk_left();
}

const Statistics& Matcher::statistics() const noexcept {
  return parts_->Surroundings::statistics;
}

}  // namespace haul::fabric
