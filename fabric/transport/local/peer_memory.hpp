// The ways to reach the memory of one peer process without packets: its arena, mapped whole, and
// its private memory by the kernel (process_vm_readv). Each way is probed by a real copy when the
// peer says hello, and is not offered unless that went well.
//
// Threads: made, and told of an arena, by the control thread under its lock; asked by the
// endpoint's thread, which needs no lock for what is marked so.
#pragma once

#include <haul/haul.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fabric/transport/local/introduction.hpp"

namespace haul::fabric {

class PeerMemory {
 public:
  // `pid` is the process at the other end of a socket; 0: it has none in this pid namespace. Probes
  // the kernel's way by the word that the process has named.
  PeerMemory(pid_t pid, std::uint64_t probe_address, std::uint64_t probe_value) noexcept;
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  // ---- control thread ----
  // Maps and probes the arena behind fd (the caller's to close). Only the first one counts.
  void take_arena(int fd, const ArenaNote& note) noexcept;
  // Under the lock: what is missing and why, "" if nothing is.
  const char* why() const noexcept { return why_; }

  // ---- any thread, no lock ----
  // Where [offset, offset + bytes) of the peer's arena lies here; nullptr if it does not.
  std::byte* mapped(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  bool has_arena() const noexcept { return arena_bytes_.load(std::memory_order_acquire) != 0; }
  bool has_kernel() const noexcept { return kernel_.load(std::memory_order_relaxed); }
  // The kernel has refused after all.
  void lose_kernel(const char* why) noexcept;

  // ---- the endpoint's thread ----
  // The peer's memory as a haul space, opened at the first use; HAUL_SPACE_SELF if that fails:
  // has_kernel() is false from then on.
  haul_space space() noexcept;

 private:
  bool probe_kernel(const char** why) noexcept;
  bool probe_word_seen() const noexcept;
  void note(const char* way, const char* why) noexcept;

  const pid_t pid_;
  const std::uint64_t probe_address_, probe_value_;
  std::atomic<bool> kernel_{false};
  haul_space space_ = HAUL_SPACE_SELF;
  std::byte* arena_ = nullptr;  // read after arena_bytes_ was seen
  std::atomic<std::uint64_t> arena_bytes_{0};
  char why_[120] = {};
};

}  // namespace haul::fabric
