// The endpoint's side of its sockets.
#include "fabric/transport/local/peer_sockets.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "base/machine/clock.hpp"
#include "base/net/socket.hpp"
#include "base/os/os.hpp"
#include "fabric/transport/identity.hpp"

namespace haul::fabric {
namespace {

// All ranks of a node may connect at once.
constexpr int backlog = 1024;

bool send_word(const os::Descriptor& socket, SocketWord word) noexcept {
  return os::send_packet(socket.get(), &word, sizeof word) == static_cast<ssize_t>(sizeof word);
}

// The FI_E* of a connect() that failed; a lack of descriptors is logged, once.
int refusal(int error) noexcept {
  if (error == EMFILE || error == ENFILE) {
    static std::atomic<bool> logged{false};
    if (!logged.exchange(true, std::memory_order_relaxed)) {
      log(LogLevel::error,
          "messages: no descriptor is left to connect to another process; raise ulimit -n (three "
          "are needed for each process of the node)");
    }
    return FI_EMFILE;
  }
  // Nobody listens, or the listener has closed at once.
  const bool gone = error == ENOENT || error == EPIPE || error == ECONNRESET;
  return gone ? FI_ECONNREFUSED : error;
}

}  // namespace

PeerSockets::~PeerSockets() {
  close();
}

Expected<bool> PeerSockets::listen(const Address& address) noexcept {
  own_ = address;
  opened_ns_ = now_ns();
  char name[name_bytes];
  socket_name(address, name);
  const int listener = os::listen_abstract(name, backlog), spare = os::event_fd();
  listener_ = os::Descriptor::of(listener);
  spare_ = os::Descriptor::of(spare);
  if (listener >= 0 && spare >= 0) listener_watch_ = control::watch(*this, listener_);
  if (listener_watch_ != 0) return true;
  const int error = listener < 0 ? -listener : spare < 0 ? -spare : ENOMEM;
  if (error == EADDRINUSE) {
    return make_error(Code::io, error,
                      "Another endpoint of this host has this address already; close it, or choose "
                      "another port.");
  }
  return make_error(Code::io, error,
                    "No socket for peers to connect to (%s); raise ulimit -n, and let the seccomp "
                    "filter allow Unix sockets and epoll.",
                    describe_errno(error));
}

void PeerSockets::arrive(Arrival&& arrival) noexcept {
  arrivals_.push_back(std::move(arrival));
  // Release: pairs with the acquire load of news before next().
  news_.store(1, std::memory_order_release);
  ring();
}

void PeerSockets::ring() const noexcept {
  if (const int bell = bell_.get(); bell >= 0) os::event_signal(bell);
}

void PeerSockets::arm(const os::Descriptor& bell, bool by_time) noexcept {
  bell_ = bell;
  by_time_ = by_time;
  if (!arrivals_.empty()) ring();
  if (by_time) control::nudge();
}

bool PeerSockets::next(Arrival& arrival) noexcept {
  if (arrivals_.empty()) {
    news_.store(0, std::memory_order_relaxed);
    return false;
  }
  arrival = std::move(arrivals_.front());
  arrivals_.pop_front();
  return true;
}

PeerSockets::Connection* PeerSockets::adopt(const os::Descriptor& socket,
                                            std::uint64_t* name) noexcept {
  *name = control::watch(*this, socket);
  if (*name == 0) return nullptr;
  Connection& connection = connections_[*name];
  connection.socket = socket;
  connection.socket_watch = *name;
  os::SocketPeer peer;
  if (os::peer_of(socket.get(), &peer)) connection.pid = peer.pid;
  return &connection;
}

void PeerSockets::watch_process(std::uint64_t name, Connection& connection) noexcept {
  // One pidfd is enough for a peer: when one connection ends, its others are looked at.
  const auto watches = [&](const auto& entry) {
    return entry.second.process.intact() && entry.second.known && !entry.second.over &&
           entry.second.address == connection.address;
  };
  if (std::any_of(connections_.begin(), connections_.end(), watches)) return;
  // Without a pidfd (no descriptor is left, or an old kernel) the sockets alone tell.
  connection.process = os::Descriptor::of(os::peer_pidfd(connection.socket.get()));
  if (!connection.process.valid()) return;
  connection.process_watch = control::watch(*this, connection.process);
  if (connection.process_watch != 0) processes_[connection.process_watch] = name;
}

PeerSockets::Connection* PeerSockets::connected_to(const Address& peer) noexcept {
  for (auto& [name, connection] : connections_) {
    if (connection.known && !connection.over && connection.address == peer) return &connection;
  }
  return nullptr;
}

// 0, or -errno.
int PeerSockets::open_socket(const Address& peer, Connection** made) noexcept {
  char socket_of_peer[name_bytes];
  socket_name(peer, socket_of_peer);
  const int socket = os::connect_abstract(socket_of_peer);
  if (socket < 0) return socket;
  os::SocketPeer process;
  std::uint64_t name = 0;
  int error = 0;
  if (!os::peer_of(socket, &process) || process.uid != os::user_id()) {
    error = -EACCES;
  } else {
    *made = adopt(os::Descriptor::of(socket), &name);
    if (*made == nullptr) error = -ENOMEM;
  }
  if (error != 0) {
    os::close_fd(socket);
    return error;
  }
  (*made)->known = true;
  (*made)->address = peer;
  watch_process(name, **made);
  return 0;
}

// False: the peer's queue is full, try again.
bool PeerSockets::try_connect(Waiting& waiting) noexcept {
  Connection* connection = orphaned_ ? nullptr : connected_to(waiting.peer);
  int error = orphaned_ ? -FI_ENOTCONN : 0;
  if (error == 0 && connection == nullptr) error = open_socket(waiting.peer, &connection);
  if (error == 0) {
    Introduction hello;
    hello.segment_bytes = segment_bytes;
    hello.from = own_;
    hello.probe_address = probe_word_address();
    hello.probe_value = probe_word_value();
    hello.arena = waiting.arena.note;
    const int fds[] = {waiting.segment->descriptor(), waiting.arena.descriptor.get()};
    const unsigned count = hello.arena.bytes != 0 ? 2 : 1;
    const ssize_t sent =
        os::send_packet(connection->socket.get(), &hello, sizeof hello, fds, count);
    if (sent < 0) error = static_cast<int>(sent);
  }
  if (error == -EAGAIN) return false;
  if (error == 0) {
    waiting.segment->close_descriptor();
    connection->told = true;
    arrive({.what = NetworkEvent::What::connected,
            .address = waiting.peer,
            .connection = connection->socket_watch,
            .socket = connection->socket,
            .segment = std::move(waiting.segment)});
  } else {
    refuse(waiting.peer, refusal(-error));
  }
  return true;
}

void PeerSockets::connect(const Address& peer, std::unique_ptr<SharedSegment> segment,
                          const OwnArena& arena) noexcept {
  Waiting waiting{peer, std::move(segment), arena};
  if (try_connect(waiting)) return;
  waiting_.push_back(std::move(waiting));
  control::nudge();
}

void PeerSockets::refuse(const Address& peer, int error) noexcept {
  arrive({.what = NetworkEvent::What::refused, .address = peer, .error = error});
}

void PeerSockets::tell_arena(const Address& peer, const OwnArena& arena) noexcept {
  Connection* connection = orphaned_ ? nullptr : connected_to(peer);
  if (connection == nullptr) return;
  ArenaNews news;
  news.arena = arena.note;
  // If it does not go through, the peer reaches this memory in another way.
  const int fd = arena.descriptor.get();
  os::send_packet(connection->socket.get(), &news, sizeof news, &fd, 1);
}

void PeerSockets::release(Connection& connection, bool say_end) noexcept {
  if (connection.socket_watch != 0) control::unwatch(connection.socket_watch);
  if (connection.process_watch != 0) {
    control::unwatch(connection.process_watch);
    processes_.erase(connection.process_watch);
  }
  if (say_end) {
    send_word(connection.socket, SocketWord::end);
    // This works also where a child of this process still has the socket.
    os::shut_socket(connection.socket.get());
  }
  connection.socket.close();
  connection.process.close();
}

std::unordered_map<std::uint64_t, PeerSockets::Connection>::iterator PeerSockets::erase(
    std::unordered_map<std::uint64_t, Connection>::iterator at, bool say_end) noexcept {
  if (!at->second.known) --strangers_;
  release(at->second, say_end);
  return connections_.erase(at);
}

void PeerSockets::forget(const Address& peer, std::vector<std::uint64_t> names) noexcept {
  std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.peer == peer; });
  for (const Arrival& arrival : arrivals_) {
    if (arrival.what == NetworkEvent::What::connected && arrival.address == peer)
      names.push_back(arrival.connection);
  }
  std::erase_if(arrivals_, [&](const Arrival& arrival) {
    return std::find(names.begin(), names.end(), arrival.connection) != names.end() ||
           (arrival.what == NetworkEvent::What::refused && arrival.address == peer);
  });
  for (const std::uint64_t name : names) {
    if (const auto found = connections_.find(name); found != connections_.end()) erase(found, true);
  }
}

void PeerSockets::close() noexcept {
  if (listener_watch_ != 0) {
    control::unwatch(listener_watch_);
    // Peers that wait to be accepted are told like the others.
    for (int socket; (socket = os::accept_from(listener_.get())) >= 0; os::close_fd(socket))
      send_word(os::Descriptor::of(socket), SocketWord::end);
  }
  listener_watch_ = 0;
  listener_.close();
  spare_.close();
  bell_ = os::Descriptor();
  for (auto at = connections_.begin(); at != connections_.end();) at = erase(at, true);
  waiting_.clear();
  arrivals_.clear();
}

}  // namespace haul::fabric
