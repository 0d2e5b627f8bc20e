// The endpoint's thread: peers come and go, and are armed.
#include "fabric/transport/local/local.hpp"

#include <rdma/fi_errno.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/log.hpp"
#include "base/machine/clock.hpp"
#include "base/net/socket.hpp"
#include "base/os/os.hpp"
#include "fabric/transport/local/local_access.hpp"

namespace haul::fabric {
namespace {

// Whether this process's fences reach its peers' running threads. Registering makes others' fences
// reach this one's; it holds for children, and takes milliseconds.
bool fences_work() noexcept {
  static const bool work = os::membarrier_register_global() && os::membarrier_global();
  return work;
}

// Says the first one only: connecting to each process of a large node would fail for the same
// reason.
void say_once(const Error& error) noexcept {
  static std::atomic<bool> said{false};
  if (!said.exchange(true, std::memory_order_relaxed))
    log(LogLevel::error, "messages: %s", error.sentence);
}

// Called by commit(). The writer that takes the flag rings once, for everything that follows until
// the reader raises the flag again.
void ring_peer(void* argument) noexcept {
  const auto& bell = *static_cast<LocalPeer::Bell*>(argument);
  if (bell.segment->armed.exchange(0, std::memory_order_relaxed) == 0) return;
  constexpr SocketWord word = SocketWord::bell;
  // If its queue is full, it is awake already.
  os::send_packet(bell.socket.get(), &word, sizeof word);
}

}  // namespace

LocalNetwork::LocalNetwork(std::atomic<std::uint32_t>* outer_news,
                           const HaulPrivateMessageLimits& limits) noexcept
    : limits_(limits),
      sockets_(*this, outer_news != nullptr ? *outer_news : news),
      access_(std::make_unique<LocalAccess>(*this)),
      opener_(getpid()) {}

Expected<std::unique_ptr<LocalNetwork>> LocalNetwork::open(
    const Address& address, std::atomic<std::uint32_t>* news,
    const HaulPrivateMessageLimits& limits) noexcept {
  std::unique_ptr<LocalNetwork> made(new LocalNetwork(news, limits));
  made->address_ = address;
  // Registered before anybody can send to it, or it to anybody.
  fences_work();
  Expected<bool> joined = control::join(made->sockets_);
  if (!joined) return joined.error();
  const control::ControlLock locked;
  Expected<bool> listening = made->sockets_.listen(address);
  if (!listening) {
    made->sockets_.close();
    return listening.error();
  }
  return made;
}

LocalNetwork::~LocalNetwork() {
  const bool ours = !lost() && !sockets_.orphaned();
  if (ours) {
    publish(nullptr);
    while (!peers_.empty()) drop(Address(peers_.begin()->first));
    const control::ControlLock locked;
    sockets_.close();
  }
  control::leave(sockets_);
  collector_.close();
  doorbell_.close();
}

bool LocalNetwork::lost() const noexcept {
  return getpid() != opener_ && !sockets_.orphaned();
}

LocalPeer* LocalNetwork::find(const Address& address) noexcept {
  const auto found = peers_.find(address);
  return found != peers_.end() ? &found->second : nullptr;
}

void LocalNetwork::refuse(const Address& address, int error) noexcept {
  const control::ControlLock locked;
  sockets_.refuse(address, error);
}

void LocalNetwork::connect(const Address& address) noexcept {
  if (address.host != address_.host) {
    say_once(make_error(Code::not_supported, 0,
                        "a process of another node cannot be reached without a carrier; set "
                        "HAUL_FABRIC_OFFNODE, and HAUL_LOG_LEVEL=info to see why there is none"));
    return refuse(address, FI_EHOSTUNREACH);
  }
  const OwnArena arena = own_arena();
  Expected<std::unique_ptr<SharedSegment>> segment = SharedSegment::make();
  if (!segment) {
    say_once(segment.error());
    return refuse(address, segment.error().sys_errno);
  }
  const control::ControlLock locked;
  peers_[address].arena_told = arena.descriptor.valid();
  sockets_.connect(address, std::move(*segment), arena);
}

void LocalNetwork::share_arena(const Address& address, LocalPeer& peer) noexcept {
  if (std::exchange(peer.arena_told, true)) return;
  const OwnArena arena = own_arena();
  if (!arena.descriptor.valid()) return;
  const control::ControlLock locked;
  sockets_.tell_arena(address, arena);
}

bool LocalNetwork::next(NetworkEvent& event) noexcept {
  event = NetworkEvent{};
  for (;;) {
    Arrival arrival;
    const control::ControlLock locked;
    if (!sockets_.next(arrival)) return false;
    if (take(arrival, event)) return true;
  }
}

// Under the lock. True: *event is for the protocol.
bool LocalNetwork::take(Arrival& arrival, NetworkEvent& event) noexcept {
  event.what = arrival.what;
  event.address = arrival.address;
  switch (arrival.what) {
    case NetworkEvent::What::opened: return opened(arrival, event);
    case NetworkEvent::What::connected: {
      LocalPeer& peer = peers_[arrival.address];
      peer.out = std::move(arrival.segment);
      peer.out_connection = arrival.connection;
      peer.bell = LocalPeer::Bell{&peer.out->segment(), arrival.socket};
      peer.outbox.emplace(peer.out->segment(), ring_peer, &peer.bell, limits_.near, &peer.cells);
      follow_distance(peer);
      event.outbox = &*peer.outbox;
      return true;
    }
    case NetworkEvent::What::refused: event.error = arrival.error; return true;
    case NetworkEvent::What::ended:
    case NetworkEvent::What::died: return over(arrival);
  }
  return false;
}

bool LocalNetwork::opened(Arrival& arrival, NetworkEvent& event) noexcept {
  LocalPeer& peer = peers_[arrival.address];
  if (peer.inbox) {
    // Either this was told that the peer has gone, or the peer breaks the rules; it counts no more.
    sockets_.forget(arrival.address, {arrival.connection});
    event.what = NetworkEvent::What::died;
    return !std::exchange(peer.lost, true);
  }
  peer.in = std::move(arrival.segment);
  peer.in_connection = arrival.connection;
  peer.reach = std::move(arrival.reach);
  peer.inbox.emplace(peer.in->segment(), &peer.cells);
  follow_distance(peer);
  if (armed_) peer.in->segment().armed.store(1, std::memory_order_relaxed);
  event.inbox = &*peer.inbox;
  return true;
}

void LocalNetwork::follow_distance(LocalPeer& peer) noexcept {
  if (!peer.outbox) return;
  peer.outbox->follow({&limits_.near, &limits_.far, haul_private_cache_of,
                       peer.inbox ? &*peer.inbox : nullptr,
                       peer.in != nullptr ? &peer.in->segment().writer_cache : nullptr});
}

bool LocalNetwork::over(const Arrival& arrival) noexcept {
  LocalPeer* peer = find(arrival.address);
  // (In a child of fork everything is over.)
  const bool current =
      peer != nullptr && (arrival.connection == peer->out_connection ||
                          arrival.connection == peer->in_connection || sockets_.orphaned());
  if (current) return !std::exchange(peer->lost, true);
  sockets_.forget(arrival.address, {arrival.connection});
  return false;
}

void LocalNetwork::drop(const Address& address) noexcept {
  const auto found = peers_.find(address);
  if (found == peers_.end()) return;
  // Copies of haul's that are under way use what is unmapped here.
  const bool over = access_->finish(found->second);
  const control::ControlLock locked;
  sockets_.forget(address, {found->second.out_connection, found->second.in_connection});
  if (over) {
    peers_.erase(found);
  } else {
    found->second.lost = true;
    lingering_.push_back(new Peers::node_type(peers_.extract(found)));
  }
}

DirectAccess& LocalNetwork::access() noexcept {
  return *access_;
}

int LocalNetwork::doorbell() noexcept {
  const control::ControlLock locked;
  return make_doorbell();
}

// Under the lock.
int LocalNetwork::make_doorbell() noexcept {
  if (const int known = doorbell_.get(); known >= 0) return known;
  const int made = os::event_fd();
  doorbell_ = os::Descriptor::of(made);
  return made;
}

void LocalNetwork::arm() noexcept {
  const bool by_time = !fences_work();
  {
    const control::ControlLock locked;
    make_doorbell();
    armed_ = true;
    sockets_.arm(doorbell_, by_time);
    for (auto& [address, peer] : peers_) {
      if (peer.in) peer.in->segment().armed.store(1, std::memory_order_relaxed);
    }
  }
  // From now on either this process sees a packet, or its sender sees the flag.
  os::membarrier_global();
}

void LocalNetwork::disarm() noexcept {
  const control::ControlLock locked;
  armed_ = false;
  sockets_.disarm();
  for (auto& [address, peer] : peers_) {
    if (peer.in) peer.in->segment().armed.store(0, std::memory_order_relaxed);
  }
  if (const int bell = doorbell_.get(); bell >= 0) os::event_clear(bell);
}

void LocalNetwork::publish(const Statistics* statistics) noexcept {
  if (statistics == nullptr) {
    const control::ControlLock locked;
    report_to_collector(true);
    sockets_.publish(nullptr, nullptr);
    access_->observe(nullptr);
    collector_.close();
    return;
  }
  const os::Descriptor collector = os::Descriptor::of(connect_to_collector());
  if (collector.valid()) {
    observation_.reset(new (std::nothrow) Observation(rank_in_job()));
    access_->observe(observation_.get());
  }
  const control::ControlLock locked;
  sockets_.publish(statistics, observation_.get());
  collector_ = collector;
  report_to_collector(false);
  if (collector_.valid()) control::nudge();
}

// Under the lock.
void LocalNetwork::report_to_collector(bool last) noexcept {
  if (!collector_.valid()) return;
  MonitorReply reply;
  sockets_.report(&reply);
  reply.last = last ? 1 : 0;
  told_ns_ = now_ns();
  tell_collector(collector_.get(), reply);
}

// What a rank has done until it is killed is in the report, but for the last second. Under the
// lock; returns in how many ms to call again, -1: never.
int LocalNetwork::tell_from_time_to_time() noexcept {
  constexpr std::uint64_t every_ms = 1000, ms_ns = 1'000'000;
  if (!collector_.valid()) return -1;
  const std::uint64_t passed_ms = (now_ns() - told_ns_) / ms_ns;
  if (passed_ms < every_ms) return static_cast<int>(every_ms - passed_ms);
  report_to_collector(false);
  return every_ms;
}

int LocalNetwork::Sockets::tick() noexcept {
  const int own = PeerSockets::tick(), telling = network_.tell_from_time_to_time();
  if (own < 0 || telling < 0) return std::max(own, telling);
  return std::min(own, telling);
}

// In the child: what the parent shares with its peers must not be written by two.
void LocalNetwork::Sockets::forked() noexcept {
  PeerSockets::forked();
  for (auto& [address, peer] : network_.peers_) {
    if (peer.out) peer.out->make_private();
    if (peer.in) peer.in->make_private();
    peer.bell.socket = os::Descriptor();
  }
  network_.doorbell_.close();
  network_.collector_.close();
}

}  // namespace haul::fabric
