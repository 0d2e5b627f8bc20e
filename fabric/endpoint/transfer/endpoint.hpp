// The endpoint object. An alias is another one on the same state, with flags of its own.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cstdint>
#include <memory>

#include "fabric/endpoint/transfer/endpoint_state.hpp"

namespace haul::fabric {

// The calls that transfer, in messages.cpp, rma.cpp and atomics.cpp.
extern fi_ops_msg message_ops;
extern fi_ops_tagged tagged_ops;
extern fi_ops_rma rma_ops;
extern fi_ops_atomic atomic_ops;
// fi_ops_domain.query_atomic.
int query_atomic(fid_domain* domain, fi_datatype datatype, fi_op operation, fi_atomic_attr* attr,
                 std::uint64_t flags) noexcept;

class Endpoint final : public fid_ep {
 public:
  // fi_ops_domain.endpoint and endpoint2.
  static int open(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) noexcept;
  static int open_with_flags(fid_domain* domain, fi_info* info, fid_ep** endpoint,
                             std::uint64_t flags, void* context) noexcept;
  static Endpoint& of(fid_t object) noexcept {
    return *static_cast<Endpoint*>(reinterpret_cast<fid_ep*>(object));
  }
  static Endpoint& of(fid_ep* object) noexcept { return *static_cast<Endpoint*>(object); }

  EndpointState& state() const noexcept { return *state_; }

  // Flags of an operation whose call takes none, and of one whose call takes `flags`.
  std::uint64_t send_flags() const noexcept { return send_flags_ | state_->send_completion(); }
  std::uint64_t send_flags(std::uint64_t flags) const noexcept {
    return flags | state_->send_completion();
  }
  std::uint64_t receive_flags() const noexcept {
    return receive_flags_ | state_->receive_completion();
  }
  std::uint64_t receive_flags(std::uint64_t flags) const noexcept {
    return flags | state_->receive_completion();
  }

 private:
  Endpoint(std::shared_ptr<EndpointState> state, void* context) noexcept;
  static int close(fid_t object) noexcept;
  static int bind(fid_t object, fid_t other, std::uint64_t flags) noexcept;
  static int control(fid_t object, int command, void* argument) noexcept;
  static ssize_t cancel(fid_t object, void* context) noexcept;
  static int get_option(fid_t object, int level, int name, void* value,
                        std::size_t* bytes) noexcept;
  static int set_option(fid_t object, int level, int name, const void* value,
                        std::size_t bytes) noexcept;
  static int get_name(fid_t object, void* address, std::size_t* bytes) noexcept;
  int make_alias(const struct fi_alias* request) const noexcept;
  int set_flags(std::uint64_t flags) noexcept;
  int get_flags(std::uint64_t* flags) const noexcept;

  std::shared_ptr<EndpointState> state_;
  std::uint64_t send_flags_ = 0;
  std::uint64_t receive_flags_ = 0;
};

}  // namespace haul::fabric
