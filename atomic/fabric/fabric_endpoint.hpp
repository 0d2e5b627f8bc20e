// A libfabric endpoint with what it needs: the one place that opens a provider.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <cstdint>

#include "atomic/fabric/fabric_operation.hpp"
#include "atomic/link/fabric_host.hpp"
#include "atomic/responder/fabric.hpp"
#include "base/error.hpp"
#include "base/os/descriptor.hpp"

namespace haul::atomics {

class FabricEndpoint {
 public:
  FabricEndpoint() noexcept = default;
  ~FabricEndpoint() { close(); }
  FabricEndpoint(const FabricEndpoint&) = delete;
  FabricEndpoint& operator=(const FabricEndpoint&) = delete;

  bool open(const FabricOptions& options, Error* error) noexcept;
  // Ends what is under way: the provider has no context any more afterwards.
  void close() noexcept;

  const Abilities& abilities() const noexcept { return abilities_; }
  const FabricHost& host() const noexcept { return host_; }
  // Whether somebody must look at the queue so that others' operations are served.
  bool needs_a_look() const noexcept { return needs_a_look_; }
  bool has_local_registrations() const noexcept { return local_; }

  // Registers memory that peers may operate on, or that the provider reads and writes. 0 or -FI_E*.
  int enlist(void* at, std::size_t bytes, std::uint64_t access, fid_mr** registration) noexcept;
  // 0 or -FI_E*.
  int insert(const FabricHost& peer, fi_addr_t* address) noexcept;

  struct Target {
    fi_addr_t peer = 0;
    std::uint64_t address = 0, key = 0;  // the window's
  };
  // What the provider reads and writes; registered where it must be (`descriptor`).
  struct Words {
    std::uint64_t operand = 0, compare = 0, result = 0;
  };
  // 0 or -FI_E*.
  ssize_t ask(const Target& target, const ProviderQuestion& question, Words* words,
              void* descriptor, void* context) noexcept;

  // An operation that has ended: its context, and 0 or FI_E*. False: none has.
  bool next_ended(void** context, int* failure) noexcept;
  // Sleeps until there may be one, or until `other` is readable.
  void sleep(std::uint64_t longest_ns, int other) noexcept;

 private:
  bool find(const FabricOptions& options, Error* error) noexcept;
  int start() noexcept;
  bool ask_abilities(Error* error) noexcept;

  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_av* addresses_ = nullptr;
  fid_cq* queue_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  os::Descriptor queue_fd_;  // the provider's; none: it has none
  bool local_ = false, by_address_ = false, chooses_keys_ = false, binds_ = false;
  bool needs_a_look_ = true;
  Abilities abilities_;
  FabricHost host_;
};

}  // namespace haul::atomics
