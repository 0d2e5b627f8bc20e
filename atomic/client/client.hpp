// Connections by UDP: the socket and the completion map that answers come by, and the frames that
// requests leave as.
#pragma once

#include <cstdint>

#include "atomic/client/carrier.hpp"
#include "atomic/link/address.hpp"
#include "atomic/link/raw_sender.hpp"
#include "atomic/link/udp_socket.hpp"
#include "atomic/responder/xdp.hpp"
#include "base/error.hpp"

namespace haul::atomics {

class Client;

class UdpConnection final : public Connection {
 public:
  UdpConnection(Client& client, const Session::Names& names, const Address& peer,
                std::uint64_t timeout_ns, completion_slot* slot) noexcept;
  void send(const Packet& packet) noexcept override;

 private:
  friend class Client;
  Client& client_;
  const Address peer_;
  completion_slot* const slot_;  // nullptr: its answers come by the socket
  FrameFront front_;
  std::uint64_t repeats_seen_ = 0;
};

class Client final : public Carrier {
 public:
  Client() noexcept = default;
  ~Client() { close(); }

  // Opens the socket at an address of this host (port 0). 0 or -errno.
  int open(const Options& options, const Address& at) noexcept;
  std::uint16_t port() const noexcept { return socket_.local().port(); }
  // From now on answers come by the completion map, and packets leave as frames by this interface,
  // if that can be had.
  void hear_by(Xdp* xdp, const char* interface) noexcept;
  void close() noexcept;

 private:
  friend class UdpConnection;

  Expected<Connection*> make(const haul_window_name& name,
                             const Session::Names& names) noexcept override;
  void parting(Connection& connection) noexcept override;
  void is_open(Connection& connection) noexcept override;
  void pump(std::uint64_t now_ns) noexcept override;
  void pump_one(Connection& connection, std::uint64_t now_ns) noexcept override;
  void sleep(Connection& connection) noexcept override;
  Error refusal(Code code, const haul_window_name& name) const noexcept override;

  // The lock is held.
  static UdpConnection& own(Connection& connection) noexcept {
    return static_cast<UdpConnection&>(connection);
  }
  void receive(std::uint64_t now_ns) noexcept;
  bool has_unheard_by_socket() const noexcept;

  UdpSocket socket_;
  RawSender raw_;
  Xdp* xdp_ = nullptr;
  std::uint64_t socket_looked_ns_ = 0;
};

}  // namespace haul::atomics
