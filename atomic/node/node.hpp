// A node: its responder, its windows, its client side. What a haul_atomic_node is.
#pragma once

#include <haul/atomic.h>
#include <pthread.h>

#include <cstdint>

#include "atomic/client/udp_carrier.hpp"
#include "atomic/node/attendant.hpp"
#include "atomic/node/specification.hpp"
#include "atomic/responder/fabric.hpp"
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
  bool is_here() const noexcept { return carrier().is_here(); }

  Expected<Window*> create_window(std::size_t bytes) noexcept;
  // Ends its service; it is no longer this node's.
  void withdraw(Window* window) noexcept;
  // To another process of this host. Memory: *fd is a duplicate of its descriptor, the caller's to
  // close. False: it does not know the key of that window.
  bool answer(const AttachRequest& request, AttachReply* reply, int* fd) noexcept;

  Carrier& carrier() noexcept {
    return fabric_ != nullptr ? static_cast<Carrier&>(*fabric_) : client_;
  }
  const Carrier& carrier() const noexcept {
    return fabric_ != nullptr ? static_cast<const Carrier&>(*fabric_) : client_;
  }
  const char* description() const noexcept { return description_; }
  // The process has closed the descriptors that it serves by, and they could not be had again.
  bool has_lost_service() const noexcept {
    return serves_by_xdp_ ? !xdp_->is_intact() : host_.is_lost();
  }
  void counters(std::uint64_t* values) noexcept;

  // The events of a responder, those of an XDP client, packets sent again.
  static constexpr unsigned counter_count = XDP_EVENTS + 1;
  static const char* counter_name(std::size_t index) noexcept;

 private:
  Node() noexcept = default;
  bool start(const Specification& specification, const haul_atomic_node_options& options,
             Error* error) noexcept;
  bool find_place(const Specification& specification, const haul_atomic_node_options& options,
                  SocketAddress* at, Error* error) noexcept;
  bool start_xdp(const Specification& specification, const haul_atomic_node_options& options,
                 const SocketAddress& at, Error* error) noexcept;
  bool start_host(HostMode mode, const haul_atomic_node_options& options, const SocketAddress& at,
                  Error* error) noexcept;
  bool start_fabric(const Specification& specification, const haul_atomic_node_options& options,
                    Error* error) noexcept;
  bool serve(Window* window, Error* error) noexcept;
  bool start_attendant(Error* error) noexcept;
  void describe(const char* how, const char* interface, const char* why) noexcept;

  haul_atomic_window_name name_{};  // host and port; what windows' names begin with
  XdpProgram* xdp_ = nullptr;
  // xdp: the port's sockets, for what the program leaves to the kernel.
  UdpSocket passed_, passed_six_;
  HostResponder host_;
  bool serves_by_host_ = false, serves_by_xdp_ = false;
  UdpCarrier client_;         // by UDP, or
  Fabric* fabric_ = nullptr;  // over a fabric
  Attendant attendant_;
  char description_[256] = {};

  pthread_mutex_t windows_lock_ = PTHREAD_MUTEX_INITIALIZER;
  Window* windows_[max_windows] = {};
};

}  // namespace haul::atomics
