// Packets under way, one run each: the provider is asked for its operations one after another. A
// run stays while the provider has its context, even if nobody waits for it any more.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

#include "atomic/fabric/fabric_endpoint.hpp"
#include "atomic/fabric/fabric_operation.hpp"
#include "atomic/wire/wire_packet.hpp"

namespace haul::atomics {

class FabricConnection;

struct Run {
  fi_context2 context;                     // first: how a completion names its run
  Run* next = nullptr;                     // in a list
  FabricConnection* connection = nullptr;  // nullptr: nobody waits for it
  void* descriptor = nullptr;
  bool in_use = false;
  std::uint64_t posted_ns = 0;  // 0: the provider does not have it
  unsigned at = 0;              // the operation that is under way
  FabricOperation operation;
  ProviderQuestion question;
  FabricEndpoint::Words words;
  WirePacket packet;  // becomes its answer
};

// The runs' memory, which only grows. Not thread-safe.
class Runs {
 public:
  Runs() noexcept = default;
  ~Runs() { close(); }
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  // nullptr: no memory.
  Run* take(FabricEndpoint& endpoint) noexcept;
  void give_back(Run* run) noexcept;
  // Whether this connection has anything under way since before this time.
  bool is_late(const FabricConnection* connection, std::uint64_t ns) const noexcept;
  // Nobody waits any more for what this connection has under way.
  void forget(const FabricConnection* connection) noexcept;
  // While the endpoint's domain is still there.
  void close_registrations() noexcept;
  // When the provider has no context any more.
  void close() noexcept;

 private:
  static constexpr unsigned chunk_runs = 32;
  struct Chunk {
    Chunk* next = nullptr;
    fid_mr* registration = nullptr;
    Run runs[chunk_runs];
  };
  Chunk* chunks_ = nullptr;
  Run* free_ = nullptr;
};

}  // namespace haul::atomics
