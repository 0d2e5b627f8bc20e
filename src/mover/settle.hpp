// Waits for everything in flight in the process, for as long as it makes progress: for fork(),
// exit() and haul_shutdown().
#pragma once

#include <cstdint>

namespace haul {

// What settle_all() had to leave.
struct Unsettled {
  std::uint32_t requests = 0;
  std::uint64_t bytes = 0;        // of these requests, not known to be done
  std::uint64_t whole_bytes = 0;  // of theirs
  std::uint32_t ring = 0;         // the first request's
  bool service = false;           // that request is for the node's service
  bool no_mover = false;          // no mover exists: the thread that submitted is to make one
  std::uint64_t waited_ns = 0;    // since the last progress
  explicit operator bool() const noexcept { return requests != 0; }
};

// Waits until every published request has ended, but no longer than patience_ns after the last
// progress: memory may not arrive (userfaultfd, FUSE, NFS), the node's service may be stopped, a
// crash handler may hold the mover. It does not help, since it would then hang on the same memory.
// The gate is held, so nothing new is published. Takes no lock, blocks no signals.
Unsettled settle_all(std::uint64_t patience_ns) noexcept;

// Says on standard error what `who` ("fork()", "exit()") leaves, and the likely reason.
void tell_left(const char* who, const Unsettled& left) noexcept;

}  // namespace haul
