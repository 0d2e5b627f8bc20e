// The control thread's side of an endpoint's sockets.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/net/socket.hpp"
#include "base/os/os.hpp"
#include "fabric/transport/local/peer_sockets.hpp"

namespace haul::fabric {
namespace {

// Connections that have said nothing yet, or only ask for counters.
constexpr unsigned max_strangers = 256;
// Of one connection before the next gets its turn, and of one whose peer may have ended: more than
// a socket's queue holds.
constexpr unsigned packets_a_turn = 16, packets_at_the_end = 4096;
constexpr int retry_ms = 1;

}  // namespace

SocketWord PeerSockets::Received::word() const noexcept {
  SocketWord word{};
  if (length >= sizeof word) std::memcpy(&word, bytes, sizeof word);
  return word;
}

template <class T>
bool PeerSockets::Received::read_as(T* out) const noexcept {
  if (length != sizeof *out) return false;
  std::memcpy(static_cast<void*>(out), bytes, sizeof *out);
  return true;
}

void PeerSockets::ready(std::uint64_t watch) noexcept {
  if (watch == listener_watch_) {
    if (listener_.intact()) {
      accept_all();
    } else {
      listener_watch_ = 0;
      log(LogLevel::error,
          "messages: the program has closed the socket at which other processes reach it (%d); let "
          "it close its own descriptors alone",
          listener_.number());
    }
    return;
  }
  if (const auto process = processes_.find(watch); process != processes_.end()) {
    const auto found = connections_.find(process->second);
    // Closed by the program, it tells of nobody's death.
    if (found != connections_.end() && !found->second.process.intact()) {
      found->second.process_watch = 0;
      processes_.erase(process);
      return;
    }
    // What the peer said before it died is read first: there may be a good-bye.
    if (found != connections_.end()) {
      read_packets(found->first, found->second, packets_at_the_end);
      const auto still = connections_.find(process->second);
      if (still != connections_.end()) end(still->first, still->second);
    }
    return;
  }
  const auto found = connections_.find(watch);
  if (found != connections_.end()) read_packets(found->first, found->second, packets_a_turn);
}

void PeerSockets::accept_all() noexcept {
  for (;;) {
    const int socket = os::accept_from(listener_.get());
    if (socket == -EMFILE || socket == -ENFILE) {
      accept_without_descriptors();
      return;
    }
    if (socket < 0) return;
    os::SocketPeer peer;
    std::uint64_t name = 0;
    if (strangers_ >= max_strangers || !os::peer_of(socket, &peer) || peer.uid != os::user_id() ||
        adopt(os::Descriptor::of(socket), &name) == nullptr) {
      os::close_fd(socket);
      continue;
    }
    ++strangers_;
  }
}

// Peers that cannot be accepted would wait for ever, and wake this thread for ever, so they are
// refused, by means of the spare descriptor.
void PeerSockets::accept_without_descriptors() noexcept {
  static std::atomic<bool> logged{false};
  if (!logged.exchange(true, std::memory_order_relaxed)) {
    log(LogLevel::error,
        "messages: no descriptor is left to let another process connect; raise ulimit -n (three "
        "are needed for each process of the node)");
  }
  spare_.close();
  for (int socket; (socket = os::accept_from(listener_.get())) >= 0;) os::close_fd(socket);
  spare_ = os::Descriptor::of(os::event_fd());
}

void PeerSockets::read_packets(std::uint64_t name, Connection& connection, unsigned most) noexcept {
  if (connection.over) return;
  bool failed_once = false;
  for (unsigned count = 0; count < most; ++count) {
    Received packet;
    const ssize_t got = os::receive_packet(connection.socket.get(), packet.bytes,
                                           sizeof packet.bytes, packet.fds, &packet.fd_count);
    if (got == -EAGAIN) return;
    // The kernel reports a reset before what still lies there.
    if (got == -ECONNRESET && !std::exchange(failed_once, true)) continue;
    bool goes_on = got > 0;
    if (goes_on) {
      packet.length = static_cast<std::size_t>(got);
      goes_on = take(name, connection, packet);
    }
    for (unsigned i = 0; i < packet.fd_count; ++i) os::close_fd(packet.fds[i]);
    if (!goes_on) {
      end(name, connection);
      return;
    }
  }
}

bool PeerSockets::take(std::uint64_t name, Connection& connection,
                       const Received& packet) noexcept {
  switch (packet.word()) {
    case SocketWord::connect: return on_hello(name, connection, packet);
    case SocketWord::arena: return on_arena(connection, packet);
    case SocketWord::bell: ring(); return connection.known;
    case SocketWord::monitor: answer_monitor(connection); return true;
    case SocketWord::end: connection.end_said = true; return false;
  }
  return false;
}

bool PeerSockets::on_hello(std::uint64_t name, Connection& connection,
                           const Received& packet) noexcept {
  Introduction hello;
  if (!packet.read_as(&hello) || hello.version != Introduction::current_version ||
      hello.segment_bytes != segment_bytes) {
    log(LogLevel::error,
        "messages: process %d speaks another version of haul's protocol; run all processes with "
        "one version",
        static_cast<int>(connection.pid));
    return false;
  }
  const bool has_arena = hello.arena.bytes != 0;
  if (!hello.from.valid() || hello.from.host != own_.host || connection.reach != nullptr ||
      packet.fd_count != (has_arena ? 2u : 1u) ||
      (connection.known && !(connection.address == hello.from))) {
    return false;
  }
  Expected<std::unique_ptr<SharedSegment>> segment = SharedSegment::open(packet.fds[0]);
  if (!segment) {
    log(LogLevel::error, "messages: %s", segment.error().sentence);
    return false;
  }
  if (!std::exchange(connection.known, true)) --strangers_;
  connection.address = hello.from;
  connection.told = true;
  connection.reach =
      std::make_shared<PeerMemory>(connection.pid, hello.probe_address, hello.probe_value);
  if (has_arena) connection.reach->take_arena(packet.fds[1], hello.arena);
  watch_process(name, connection);
  (*segment)->segment().accepted.store(1, std::memory_order_release);
  arrive({.address = hello.from,
          .connection = name,
          .segment = std::move(*segment),
          .reach = connection.reach});
  return true;
}

// The news may come over a connection that this side has made; then the peer's own Introduction
// came, or comes, over another one.
bool PeerSockets::on_arena(Connection& connection, const Received& packet) noexcept {
  ArenaNews news;
  if (!packet.read_as(&news) || packet.fd_count != 1 || !connection.known) return false;
  for (auto& [name, other] : connections_) {
    if (other.reach != nullptr && other.known && other.address == connection.address)
      other.reach->take_arena(packet.fds[0], news.arena);
  }
  return true;
}

void PeerSockets::answer_monitor(const Connection& connection) noexcept {
  MonitorReply reply;
  report(&reply);
  os::send_packet(connection.socket.get(), &reply, sizeof reply);
}

void PeerSockets::report(MonitorReply* reply) const noexcept {
  fill_counters(statistics_, observation_, opened_ns_, reply);
  for (const auto& [name, connection] : connections_) {
    if (connection.reach == nullptr || connection.over) continue;
    if (reply->peer_count == MonitorReply::peer_capacity) break;
    MonitorReply::PeerPaths& paths = reply->peer[reply->peer_count++];
    paths.pid = connection.pid > 0 ? connection.pid : -1;
    paths.ring = 1;
    paths.mapped = connection.reach->has_arena() ? 1 : 0;
    paths.cma = connection.reach->has_kernel() ? 1 : 0;
    std::snprintf(paths.why, sizeof paths.why, "%s", connection.reach->why());
  }
}

// The peer may have begun to send over another connection before it ended this one. What it sent
// there comes first, even if that connection was not accepted yet.
void PeerSockets::hear_out(const Address& peer) noexcept {
  accept_all();
  std::vector<std::uint64_t> names;
  for (const auto& [name, connection] : connections_) {
    const bool may_be_its = !connection.known || connection.address == peer;
    if (may_be_its && !connection.over) names.push_back(name);
  }
  for (const std::uint64_t name : names) {
    const auto found = connections_.find(name);
    if (found != connections_.end()) read_packets(name, found->second, packets_at_the_end);
  }
}

void PeerSockets::end(std::uint64_t name, Connection& connection) noexcept {
  if (!connection.told) {
    erase(connections_.find(name), false);
    return;
  }
  if (std::exchange(connection.over, true)) return;
  control::unwatch(connection.socket_watch);
  connection.socket_watch = 0;
  if (connection.process_watch != 0) {
    control::unwatch(connection.process_watch);
    processes_.erase(connection.process_watch);
    connection.process_watch = 0;
  }
  hear_out(connection.address);
  arrive({.what = connection.end_said ? NetworkEvent::What::ended : NetworkEvent::What::died,
          .address = connection.address,
          .connection = name});
}

int PeerSockets::tick() noexcept {
  for (std::size_t i = 0; i < waiting_.size();) {
    if (try_connect(waiting_[i])) {
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  const bool by_time = bell_.valid() && by_time_;
  if (by_time) ring();
  return by_time || !waiting_.empty() ? retry_ms : -1;
}

void PeerSockets::forked() noexcept {
  orphaned_ = true;
  listener_.close();
  spare_.close();
  bell_ = os::Descriptor();
  listener_watch_ = 0;
  processes_.clear();
  arrivals_.clear();
  waiting_.clear();
  for (auto& [name, connection] : connections_) {
    connection.socket.close();
    connection.process.close();
    if (!connection.told) continue;
    arrivals_.push_back(
        {.what = NetworkEvent::What::died, .address = connection.address, .connection = name});
  }
  connections_.clear();
  strangers_ = 0;
  news_.store(1, std::memory_order_release);
}

}  // namespace haul::fabric
