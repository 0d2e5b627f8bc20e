// A node: a responder and a carrier (opening.hpp), and the windows that it serves. What a
// haul_atomic_node is.
#pragma once

#include <haul/atomic.h>
#include <pthread.h>

#include <cstdint>

#include "atomic/node/attendant.hpp"
#include "atomic/node/opening.hpp"
#include "atomic/window/window.hpp"
#include "base/error.hpp"

namespace haul::atomics {

class Node {
 public:
  static Expected<Node*> open(const Specification& specification,
                              const haul_atomic_node_options& options) noexcept;
  // Ends service and connections; windows stay mapped.
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // False in a child of fork.
  bool is_here() const noexcept { return parts_.carrier->is_here(); }

  Expected<Window*> create_window(std::size_t bytes) noexcept;
  // Ends the window's service; it does not belong to this node any more.
  void withdraw(Window* window) noexcept;
  // Answers another process of this host. If it asked for memory, *fd is a duplicate of the
  // window's descriptor, which the caller closes. False: that process does not know the window's
  // key.
  bool answer(const AttachRequest& request, AttachReply* reply, int* fd) noexcept;

  Carrier& carrier() noexcept { return *parts_.carrier; }
  const char* description() const noexcept { return parts_.description; }
  bool has_lost_service() const noexcept { return parts_.responder->is_lost(); }
  void counters(std::uint64_t* values) noexcept;

  // Events of a responder, those of an XDP client, and packets sent again.
  static constexpr unsigned counter_count = XDP_EVENTS + 1;
  static const char* counter_name(std::size_t index) noexcept;

 private:
  Node() noexcept = default;
  bool serve(Window* window, Error* error) noexcept;
  bool start_attendant(Error* error) noexcept;

  NodeParts parts_;
  Attendant attendant_;

  pthread_mutex_t windows_lock_ = PTHREAD_MUTEX_INITIALIZER;
  Window* windows_[max_windows] = {};
};

}  // namespace haul::atomics
