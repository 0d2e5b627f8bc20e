// Calls go to the network that has the peer.
#include "fabric/transport/joint/joint.hpp"

#include "base/machine/clock.hpp"
#include "fabric/protocol/matcher.hpp"

namespace haul::fabric {
namespace {

// How long an armed sleeper may miss a packet of another node; and, while no peer is on another
// node, the first contact from one.
constexpr int peers_ms = 1;
constexpr int no_peers_ms = 20;

}  // namespace

Expected<std::unique_ptr<JointNetwork>> JointNetwork::open(
    const Address& address, std::unique_ptr<OffnodeNetwork> offnode) noexcept {
  std::unique_ptr<JointNetwork> made(new JointNetwork(std::move(offnode)));
  Expected<std::unique_ptr<LocalNetwork>> local = LocalNetwork::open(address, &made->news);
  if (!local) return local.error();
  made->local_ = std::move(*local);
  Expected<bool> joined = control::join(*made);
  if (!joined) return joined.error();
  return made;
}

JointNetwork::~JointNetwork() {
  control::leave(*this);
}

void JointNetwork::pass_news() noexcept {
  if (offnode_->news.load(std::memory_order_acquire) != 0) news.store(1, std::memory_order_release);
}

Network& JointNetwork::network_of(const Address& address) noexcept {
  if (is_local(address)) return *local_;
  return *offnode_;
}

void JointNetwork::connect(const Address& address) noexcept {
  network_of(address).connect(address);
  if (!is_local(address)) eager_turns = true;
  pass_news();
}

void JointNetwork::drop(const Address& address) noexcept {
  network_of(address).drop(address);
  pass_news();
}

void JointNetwork::turn() noexcept {
  offnode_->turn();
  eager_turns = offnode_->has_peers();
  pass_news();
}

// The local network clears `news` when it has no more, so it is asked last.
bool JointNetwork::next(NetworkEvent& event) noexcept {
  if (offnode_->news.load(std::memory_order_acquire) != 0 && offnode_->next(event)) return true;
  return local_->next(event);
}

void JointNetwork::arm() noexcept {
  {
    const control::ControlLock locked;
    armed_ = true;
    rung_ns_ = now_ns();
    control::nudge();
  }
  eager_turns = true;  // few turns come while the program sleeps
  local_->arm();
}

void JointNetwork::disarm() noexcept {
  local_->disarm();
  const control::ControlLock locked;
  armed_ = false;
}

int JointNetwork::tick() noexcept {
  if (!armed_) return -1;
  const int every_ms = offnode_->has_peers() ? peers_ms : no_peers_ms;
  const std::uint64_t now = now_ns(), passed_ms = (now - rung_ns_) / 1'000'000;
  // A thread that has just armed it has made progress. If it were rung at once, it would never
  // sleep.
  if (passed_ms < static_cast<std::uint64_t>(every_ms)) {
    return every_ms - static_cast<int>(passed_ms);
  }
  rung_ns_ = now;
  local_->ring();
  return every_ms;
}

DirectAccess& JointNetwork::access_of(const Peer& peer) const noexcept {
  return is_local(Matcher::address_of(peer)) ? local_->access() : offnode_->access();
}

MessageWays JointNetwork::ways(const Peer& peer, const MemoryPlace& place, std::size_t bytes,
                               bool huge_pages) const noexcept {
  return access_of(peer).ways(peer, place, bytes, huge_pages);
}

MemoryPlace JointNetwork::describe(const Peer& peer, const iovec* local, std::size_t count,
                                   bool* huge_pages) noexcept {
  return access_of(peer).describe(peer, local, count, huge_pages);
}

bool JointNetwork::can_be_mapped(const Peer& peer, const iovec& local) const noexcept {
  return access_of(peer).can_be_mapped(peer, local);
}

MessageWays JointNetwork::mapped_ways(const Peer& peer, std::size_t bytes) const noexcept {
  return access_of(peer).mapped_ways(peer, bytes);
}

void JointNetwork::withdraw(const Peer& peer, const MemoryPlace& place) noexcept {
  access_of(peer).withdraw(peer, place);
}

// The lowest bit of a ticket says which network's it is.
std::int64_t JointNetwork::joint_ticket(const Peer& peer, std::int64_t ticket) const noexcept {
  if (ticket <= 0) return ticket;
  return ticket * 2 + (is_local(Matcher::address_of(peer)) ? 0 : 1);
}

DirectAccess& JointNetwork::access_of(std::int64_t ticket) const noexcept {
  return ticket % 2 == 0 ? local_->access() : offnode_->access();
}

std::int64_t JointNetwork::start(Peer& peer, Direction direction, const iovec* local,
                                 std::size_t count, const MemoryPlace& place, std::uint64_t offset,
                                 std::size_t bytes, bool streamed) noexcept {
  return joint_ticket(
      peer, access_of(peer).start(peer, direction, local, count, place, offset, bytes, streamed));
}

std::int64_t JointNetwork::offload(Peer& peer, const iovec* local, std::size_t count,
                                   const MemoryPlace& place, std::size_t bytes) noexcept {
  return joint_ticket(peer, access_of(peer).offload(peer, local, count, place, bytes));
}

std::uint64_t JointNetwork::left_ns(std::int64_t ticket) noexcept {
  return ticket > 0 ? access_of(ticket).left_ns(ticket / 2) : 0;
}

int JointNetwork::test(std::int64_t ticket) noexcept {
  return access_of(ticket).test(ticket / 2);
}

std::size_t JointNetwork::grain(const Peer& peer, std::size_t whole) const noexcept {
  return access_of(peer).grain(peer, whole);
}

std::atomic<std::uint64_t>* JointNetwork::claim(Peer& peer, bool sender, unsigned index) noexcept {
  return access_of(peer).claim(peer, sender, index);
}

}  // namespace haul::fabric
