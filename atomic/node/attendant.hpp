// A node's thread for what is rare: other processes that want a window's memory, with xdp packets
// that the program cannot read (IPv6, VLAN, fragments), and what has become of the node's
// descriptors. It sleeps, and looks up four times a second.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "atomic/link/udp_socket.hpp"
#include "atomic/plugin/xdp_program.hpp"
#include "atomic/window/attach.hpp"
#include "base/descriptor.hpp"

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
  int open(Node* node, const haul_atomic_window_name& name, XdpProgram* xdp, UdpSocket* passed,
           UdpSocket* passed_six) noexcept;
  // Blocks for a moment; for a quarter of a second if the program has closed the thread's
  // descriptors.
  void close() noexcept;

 private:
  void run() noexcept;
  void listen_anew() noexcept;
  void admit() noexcept;
  void serve_passed(UdpSocket& socket) noexcept;

  Node* node_ = nullptr;
  XdpProgram* xdp_ = nullptr;
  UdpSocket* passed_[2] = {};
  char socket_name_[attach_name_bytes] = {};
  os::Descriptor listener_;  // the thread's, as soon as that runs
  os::Descriptor end_;
  std::atomic<bool> stop_{false};
  pthread_t thread_{};
  bool running_ = false;
};

}  // namespace haul::atomics
