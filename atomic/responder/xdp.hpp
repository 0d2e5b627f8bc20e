// The XDP program as a responder. The program serves what it can read in the receive path of its
// interface; what it passes to the kernel (IPv6, VLAN, fragments) comes to the port's sockets, and
// the node's attendant has the same program serve it there. A node "none:IFACE" has a program, too,
// which serves nobody and only hears replies.
#pragma once

#include <cstdint>

#include "atomic/link/udp_socket.hpp"
#include "atomic/plugin/xdp_program.hpp"
#include "atomic/responder/responder.hpp"

namespace haul::atomics {

class XdpResponder final : public Responder {
 public:
  struct Options {
    const char* interface = "";
    SocketAddress at;
    XdpMode mode = XdpMode::automatic;
    bool serves = true;
    std::uint16_t client_port = 0;  // network order; 0: hears nobody
    unsigned sessions = 1, connections = 1;
  };
  // nullptr and *error.
  static XdpResponder* open(const Options& options, Error* error) noexcept;
  void close() noexcept override;

  bool serves() const noexcept override { return serves_; }
  bool is_lost() const noexcept override { return serves_ && !program_->is_intact(); }
  int make_memory(std::size_t bytes, Error* error) noexcept override;
  bool add_window(const WindowMemory& memory, haul_atomic_window_name* name,
                  Error* error) noexcept override;
  void remove_window(unsigned index) noexcept override;
  void count(std::uint64_t* values) noexcept override { program_->counts(values); }
  int socket_fd(unsigned which) noexcept override { return passed_[which].fd(); }
  void serve_socket(unsigned which) noexcept override;

  XdpProgram* program() const noexcept { return program_; }
  // Where it serves; 0: nowhere.
  std::uint16_t port() const noexcept;
  // In a node's description.
  const char* how() const noexcept;

 private:
  XdpResponder() noexcept = default;
  ~XdpResponder() = default;
  bool start(const Options& options, Error* error) noexcept;

  XdpProgram* program_ = nullptr;
  UdpSocket passed_[most_sockets];  // of IPv4 and IPv6, each open or not
  bool serves_ = false;
};

}  // namespace haul::atomics
