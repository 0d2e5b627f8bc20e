// A node's thread for rare events: other processes that want a window's memory, packets on the
// responder's sockets, and descriptors of the node that the program has closed. It sleeps, and
// looks at its descriptors four times a second.
#pragma once

#include <pthread.h>

#include <atomic>

#include "atomic/responder/responder.hpp"
#include "atomic/window/attach.hpp"
#include "base/os/descriptor.hpp"

namespace haul::atomics {

class Node;

class Attendant {
 public:
  Attendant() noexcept = default;
  ~Attendant() { close(); }
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;

  // `name` has the node's host and port. 0 or -errno.
  int open(Node* node, const haul_atomic_window_name& name, Responder* responder) noexcept;
  // Blocks for a moment; for a quarter of a second if the program has closed the thread's
  // descriptors.
  void close() noexcept;

 private:
  void run() noexcept;
  void listen_again() noexcept;
  void admit() noexcept;

  Node* node_ = nullptr;
  Responder* responder_ = nullptr;
  char socket_name_[attach_name_bytes] = {};
  os::Descriptor listener_;  // the thread's, as soon as that runs
  os::Descriptor end_;
  std::atomic<bool> stop_{false};
  pthread_t thread_{};
  bool running_ = false;
};

}  // namespace haul::atomics
