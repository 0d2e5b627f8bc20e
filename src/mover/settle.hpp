// Waiting for all that is in flight in the process, for as long as it comes forward: what fork(),
// exit() and haul_shutdown() do.
#pragma once

#include <cstdint>

namespace haul {

// What settle_all() had to leave.
struct Unsettled {
  std::uint32_t requests = 0;
  std::uint64_t bytes = 0;        // of theirs that are not shown to be done
  std::uint64_t whole_bytes = 0;  // of theirs
  std::uint32_t ring = 0;         // the first one's
  bool service = false;           // that one is the node's service's to do
  bool no_mover = false;          // there is none: the thread that submitted it is to make one
  std::uint64_t waited_ns = 0;    // since the last of their bytes came forward
  explicit operator bool() const noexcept { return requests != 0; }
};

// Waits until every request that is published has ended, but no longer than patience_ns after the
// last of their bytes has come forward: memory may not arrive (userfaultfd, FUSE, NFS), the node's
// service may be stopped, a crash handler may hold the mover. It does not help, for then it would
// hang on the same memory. The gate is held, so nothing new is published. Takes no lock, blocks no
// signals.
Unsettled settle_all(std::uint64_t patience_ns) noexcept;

// Says on standard error what `who` ("fork()", "exit()") leaves, and why that may be.
void tell_left(const char* who, const Unsettled& left) noexcept;

}  // namespace haul
