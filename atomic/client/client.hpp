// A node's client side: its connections, the socket and the completion map that answers come by,
// and the waiting for them.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <memory>

#include "atomic/client/session.hpp"
#include "atomic/link/address.hpp"
#include "atomic/link/presence.hpp"
#include "atomic/link/raw_sender.hpp"
#include "atomic/link/udp_socket.hpp"
#include "atomic/responder/xdp.hpp"
#include "base/error.hpp"

namespace haul::atomics {

class Client;

// What a haul_remote is.
class Connection final : public Outlet {
 public:
  Connection(Client& client, const Session::Names& names, const Address& peer,
             std::uint64_t timeout_ns, completion_slot* slot) noexcept
      : client_(client),
        peer_(peer),
        cookie_(names.cookie),
        slot_(slot),
        session_(*this, names, timeout_ns) {}

  void send(const Packet& packet) noexcept override;
  Client& client() const noexcept { return client_; }

 private:
  friend class Client;
  Client& client_;
  const Address peer_;
  const unsigned cookie_;
  completion_slot* const slot_;  // nullptr: its answers come by the socket
  FrameFront front_;
  std::uint64_t repeats_seen_ = 0;
  Session session_;
};

// Any thread may call; calls take turns.
class Client {
 public:
  struct Options {
    unsigned connections = 64;
    std::uint64_t timeout_ns = 5'000'000'000, spin_ns = 50'000;
  };
  Client() noexcept = default;
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Opens the socket at an address of this host (port 0). 0 or -errno.
  int open(const Options& options, const Address& at) noexcept;
  std::uint16_t port() const noexcept { return socket_.local().port(); }
  // From now on answers come by the completion map, and packets leave as frames by this interface,
  // if that can be had.
  void hear_by(Xdp* xdp, const char* interface) noexcept;
  std::uint64_t spin_ns() const noexcept { return options_.spin_ns; }
  bool hears_by_completion() const noexcept { return xdp_ != nullptr; }
  void close() noexcept;
  // False in a child of fork.
  bool is_here() const noexcept { return presence_.is_here(); }

  Expected<Connection*> connect(const haul_window_name& name) noexcept;
  // The same without waiting: look() tells when it is open, or lost.
  Expected<Connection*> begin_connect(const haul_window_name& name) noexcept;
  Session::State look(Connection& connection) noexcept;
  void disconnect(Connection* connection) noexcept;

  Code submit(Connection& connection, const haul_atomic_operation* operations, std::size_t count,
              std::uint64_t tag, std::uint64_t* ticket) noexcept;
  // 1: collected, *status says how it went. 0: unanswered. -1: no such ticket.
  int test(Connection& connection, std::uint64_t ticket, haul_atomic_operation* operations,
           std::size_t count, Code* status) noexcept;
  int wait(Connection& connection, std::uint64_t ticket, haul_atomic_operation* operations,
           std::size_t count, Code* status) noexcept;
  std::size_t reap(Connection& connection, haul_atomic_completion* completions,
                   std::size_t capacity) noexcept;

  // Packets that were sent again, over all connections so far.
  std::uint64_t repeated() noexcept;

 private:
  friend class Connection;
  class Hold;

  // All of these: the lock is held.
  void pump(std::uint64_t now_ns) noexcept;
  void pump_one(Connection& connection, std::uint64_t now_ns) noexcept;
  void receive(std::uint64_t now_ns) noexcept;
  std::uint64_t next_ns() const noexcept;
  void remember_way(Connection& connection) noexcept;
  bool has_unheard_by_socket() const noexcept;

  // Sleeps until something may have come for it; the lock is not held.
  void sleep(Connection& connection) noexcept;
  Error refusal(Code code, const haul_window_name& name) const noexcept;

  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  Presence presence_;
  Options options_;
  UdpSocket socket_;
  RawSender raw_;
  Xdp* xdp_ = nullptr;
  std::unique_ptr<Connection*[]> connections_;
  unsigned used_ = 0;  // places of connections_ below this may be taken
  unsigned pumps_ = 0;
  std::uint64_t repeated_before_ = 0;  // by connections that are closed
};

}  // namespace haul::atomics
