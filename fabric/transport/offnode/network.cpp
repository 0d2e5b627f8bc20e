// Peers, events and packets of the offnode network.
#include "fabric/transport/offnode/network.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "fabric/transport/libfabric.hpp"

namespace haul::fabric {

namespace {

// Intervals in ticks(), whose rate is 1 to 5 GHz: they need not be exact.
constexpr std::uint64_t link_interval = 2'000'000;     // about a millisecond
constexpr std::uint64_t handshake_interval = 100'000;  // about 50 us
constexpr std::uint64_t longest_poll_pause = 100'000;
// A poll in vain costs a system call or two. After this many in a row polls get an eighth of the
// time, so that peers on this node do not wait for the others.
constexpr std::uint32_t vain_polls_allowed = 16;
constexpr std::uint64_t pause_per_poll = 8;
// While nothing happens, only every 16th turn reads the clock (20 to 90 ns), unless turns are rare.
constexpr std::uint32_t quiet_turns = 16;
// How long the destructor tries to send what has been committed.
constexpr std::uint64_t flush_ns = 1'000'000'000;

}  // namespace

OffnodeNetwork::OffnodeNetwork(const char* provider, const Address& self, int listener) noexcept
    : provider_(provider), self_(self), listener_(os::Descriptor::of(listener)), inbox_(*this) {
  tell({.what = NetworkEvent::What::opened, .address = {}, .inbox = &inbox_});
}

OffnodeNetwork::~OffnodeNetwork() {
  if (forked_) return;
  flush();
  for (const auto& [id, peer] : peers_) {
    say_bye(*peer, 0);
    peer->end_attempts();
  }
  listener_.close();
}

// ---- peers ----

OffnodePeer* OffnodeNetwork::find(const std::uint64_t id[2]) noexcept {
  const auto found = peers_.find(Id{{id[0], id[1]}});
  return found == peers_.end() ? nullptr : found->second.get();
}

OffnodePeer& OffnodeNetwork::peer_of(const Address& address) noexcept {
  std::unique_ptr<OffnodePeer>& slot = peers_[Id{{address.id[0], address.id[1]}}];
  if (!slot) {
    slot = std::make_unique<OffnodePeer>(self_, address);
    order_.push_back(slot.get());
    has_peers_.store(true, std::memory_order_relaxed);
  }
  return *slot;
}

OffnodePeer* OffnodeNetwork::sender(const std::uint64_t id[2]) noexcept {
  OffnodePeer* peer = find(id);
  const bool is_known = peer != nullptr && peer->incoming != nullptr;
  return is_known && peer->state < OffnodePeer::State::gone ? peer : nullptr;
}

void OffnodeNetwork::tell(const NetworkEvent& event) noexcept {
  events_.push_back(event);
  news.store(1, std::memory_order_release);
}

void OffnodeNetwork::tell(NetworkEvent::What what, OffnodePeer& peer, int error) noexcept {
  const bool connected = what == NetworkEvent::What::connected;
  tell({.what = what,
        .address = peer.address,
        .outbox = connected ? &peer.outbox : nullptr,
        .error = error});
}

bool OffnodeNetwork::next(NetworkEvent& event) noexcept {
  if (events_.empty()) {
    news.store(0, std::memory_order_release);
    return false;
  }
  event = events_.front();
  events_.pop_front();
  return true;
}

void OffnodeNetwork::drop(const Address& address) noexcept {
  OffnodePeer* peer = forked_ ? nullptr : find(address.id);
  if (peer == nullptr || peer->state == OffnodePeer::State::dropped) return;
  say_bye(*peer, FI_ESHUTDOWN);
  peer->outgoing.reset();
  peer->incoming.reset();
  peer->end_attempts();
  peer->outbox.shut();
  set_state(*peer, OffnodePeer::State::dropped);
  std::erase(order_, peer);
  std::erase(leaving_, peer);
  std::erase_if(events_, [&](const NetworkEvent& event) {
    return event.address == peer->address && event.what != NetworkEvent::What::opened;
  });
}

// ---- packets ----

void OffnodeNetwork::departed(Departure& departure, int error) noexcept {
  OffnodePeer& peer = *departure.peer;
  peer.outbox.departed(departure);
  if (error != 0) fail(peer, error);
}

void OffnodeNetwork::fail(OffnodePeer& peer, int error) noexcept {
  if (!peer.leaving && peer.state < OffnodePeer::State::gone) {
    log(LogLevel::info, "a packet to another node could not be sent (%s)",
        libfabric() != nullptr ? libfabric()->strerror(error) : describe_errno(error));
  }
  begin_leaving(peer, FI_ECONNRESET);
}

void OffnodeNetwork::arrived(OffnodeCarrier& carrier, const std::byte* data, std::size_t bytes,
                             Landing& landing) noexcept {
  inbox_.add(carrier, data, bytes, landing);
}

void OffnodeNetwork::was_read(Reading& reading, int error) noexcept {
  OffnodeAccess::was_read(reading, error);
}

bool OffnodeNetwork::push_waiting() noexcept {
  bool moved = false;
  for (OffnodePeer* peer : order_) {
    if (!peer->outbox.waiting() || peer->leaving) continue;
    const int error = peer->outbox.push();
    if (error == 0) moved = true;
    if (error != 0 && error != -FI_EAGAIN) fail(*peer, -error);
  }
  return moved;
}

bool OffnodeNetwork::poll_once() noexcept {
  bool active = false;
  for (const auto& carrier : carriers_) active |= carrier->poll(*this);
  return active | push_waiting();
}

void OffnodeNetwork::poll(std::uint64_t now) noexcept {
  vain_polls_ = poll_once() ? 0 : vain_polls_ + 1;
  if (vain_polls_ < vain_polls_allowed) return;
  const std::uint64_t end = ticks();
  next_poll_ = end + std::min((end - now) * pause_per_poll, longest_poll_pause);
}

void OffnodeNetwork::turn() noexcept {
  if (forked_) return;
  const bool is_quiet = !is_shaking_hands() && leaving_.empty() &&
                        (carriers_.empty() || vain_polls_ >= vain_polls_allowed);
  if (is_quiet && ++turns_ < turns_skipped_) return;
  const std::uint64_t now = ticks();
  turns_ = 0;
  turns_skipped_ = now - looked_ < handshake_interval ? quiet_turns : 1;
  looked_ = now;
  if (!carriers_.empty() && now >= next_poll_) poll(now);
  if (now < next_link_turn_) return;
  turn_links();
  if (!leaving_.empty()) settle(now_ns());
  next_link_turn_ = ticks() + (is_shaking_hands() ? handshake_interval : link_interval);
}

// Sends what has been committed; packets that arrive meanwhile are dropped.
void OffnodeNetwork::flush() noexcept {
  if (carriers_.empty()) return;
  const std::uint64_t end = now_ns() + flush_ns;
  const auto is_done = [this] {
    return std::all_of(order_.begin(), order_.end(), [](const OffnodePeer* peer) {
      return peer->leaving || peer->state >= OffnodePeer::State::gone || peer->outbox.flushed();
    });
  };
  while (!is_done() && now_ns() < end) {
    if (!poll_once()) os::yield();
    inbox_.clear();
    turn_links();
  }
}

// ---- fork ----

void OffnodeNetwork::forked() noexcept {
  forked_ = true;
  listener_.close();
  strangers_.clear();
  for (const auto& [id, peer] : peers_) {
    peer->outgoing.reset();
    peer->incoming.reset();
    peer->end_attempts();
  }
  // The carriers' sockets are the parent's: closing them would end the parent's connections.
  for (auto& carrier : carriers_) {
    carrier->forked();
    static_cast<void>(carrier.release());
  }
  carriers_.clear();
}

}  // namespace haul::fabric
