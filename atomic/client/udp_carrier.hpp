// Connections by UDP: the socket and the completion map that answers come by, and the frames that
// requests leave as.
#pragma once

#include <cstdint>

#include "atomic/client/carrier.hpp"
#include "atomic/link/raw_sender.hpp"
#include "atomic/link/socket_address.hpp"
#include "atomic/link/udp_socket.hpp"
#include "atomic/plugin/xdp_program.hpp"
#include "base/error.hpp"

namespace haul::atomics {

class UdpCarrier;

class UdpConnection final : public RemoteConnection {
 public:
  UdpConnection(UdpCarrier& client, const Session::Names& names, const SocketAddress& peer,
                std::uint64_t timeout_ns, completion_slot* slot) noexcept;
  void send(const WirePacket& packet) noexcept override;

 private:
  friend class UdpCarrier;
  UdpCarrier& client_;
  const SocketAddress peer_;
  completion_slot* const slot_;  // nullptr: its answers come by the socket
  FrameFront front_;
  std::uint64_t repeats_seen_ = 0;
};

class UdpCarrier final : public Carrier {
 public:
  // Opens the socket at an address of this host (port 0). nullptr and *error.
  static UdpCarrier* open(const Options& options, const SocketAddress& at, Error* error) noexcept;
  std::uint16_t port() const noexcept { return socket_.local().port(); }
  // From now on answers come by the completion map, and packets leave as frames by this interface,
  // if that can be opened.
  void hear_by(XdpProgram* xdp, const char* interface) noexcept;
  void end() noexcept override;

 private:
  friend class UdpConnection;
  UdpCarrier() noexcept = default;
  ~UdpCarrier() = default;

  Expected<RemoteConnection*> make(const haul_atomic_window_name& name,
                                   const Session::Names& names) noexcept override;
  void parting(RemoteConnection& connection) noexcept override;
  void is_open(RemoteConnection& connection) noexcept override;
  void pump(std::uint64_t now_ns) noexcept override;
  void pump_one(RemoteConnection& connection, std::uint64_t now_ns) noexcept override;
  void sleep(RemoteConnection& connection) noexcept override;
  Error refusal(Code code, const haul_atomic_window_name& name) const noexcept override;

  // The lock is held.
  static UdpConnection& own(RemoteConnection& connection) noexcept {
    return static_cast<UdpConnection&>(connection);
  }
  void receive(std::uint64_t now_ns) noexcept;
  bool has_unheard_by_socket() const noexcept;

  UdpSocket socket_;
  RawSender raw_;
  XdpProgram* xdp_ = nullptr;
  std::uint64_t socket_looked_ns_ = 0;
};

}  // namespace haul::atomics
