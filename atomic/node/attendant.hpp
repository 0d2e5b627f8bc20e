// A node's thread for what is rare: other processes that want a window's memory, and, with xdp,
// packets that the program cannot read (IPv6, VLAN, fragments). It sleeps.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "atomic/link/udp_socket.hpp"
#include "atomic/responder/xdp.hpp"
#include "atomic/window/attach.hpp"

namespace haul::atomics {

class Node;

class Attendant {
 public:
  Attendant() noexcept = default;
  ~Attendant() { close(); }
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;

  // `name` has the node's host and port. `xdp` may be nullptr; else the others are its port's
  // sockets of IPv4 and IPv6, each open or not. 0 or -errno.
  int open(Node* node, const haul_window_name& name, Xdp* xdp, UdpSocket* passed,
           UdpSocket* passed_six) noexcept;
  void close() noexcept;

 private:
  void run() noexcept;
  void admit() noexcept;
  void serve_passed(UdpSocket& socket) noexcept;

  Node* node_ = nullptr;
  Xdp* xdp_ = nullptr;
  UdpSocket* passed_[2] = {};
  int listener_ = -1, end_ = -1;
  pthread_t thread_{};
  bool running_ = false;
};

}  // namespace haul::atomics
