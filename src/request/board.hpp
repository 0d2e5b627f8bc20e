// What a process shares with the node's service: one sealed memfd with the board in front and a
// place for each ring behind it. Paper 000, III-B.2: "request and completion queues" that both map.
//
// The process writes requests into its rings; both sides claim chunks, report them and end requests
// by the same words (completion/tenancy.hpp), so a waiter helps the service as it helps a mover.
// Neither follows a pointer that the other has written: the service looks up the client's
// addresses, and its own never come here. To the service every byte of this memory is hostile
// input, which may change at any time to anything: each word is read once into private memory, then
// checked, then used (service/copying/ring_view.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "request/ring.hpp"

namespace haul {

// How many threads of a process may have a ring at the same time. Each ring is mapped when it is
// first needed (sizeof(Ring) of addresses), and costs a page once its thread is gone.
inline constexpr std::uint32_t max_rings = 16384;
// The first ones of them can lie in the shared table, for which the service takes address space for
// each of its clients.
inline constexpr std::uint32_t max_shared_rings = 1024;

struct alignas(4096) Board {
  // 1: the service sleeps, or is about to, so a thread that publishes must ring its bell (a packet
  // on the socket), once: the process exchanges it to 0. The service stores 1, issues a global
  // membarrier (the process is registered for those) and looks at the rings once more.
  alignas(64) std::atomic<std::uint32_t> asleep;
  // How many chunks of this process the service has moved; for the process's own statistics.
  std::atomic<std::uint64_t> chunks;
  // ns from a submitter's store of a line to its arrival at the service's core, a running median;
  // 0: not known. (The two cores are about twice that apart.)
  std::atomic<std::uint32_t> line_ns;

  // Written by the process: which rings in this memory are in use. The service looks at no other.
  alignas(64) std::atomic<std::uint64_t> shared[max_shared_rings / 64];
};

inline constexpr std::size_t ring_offset(std::uint32_t index) noexcept {
  return sizeof(Board) + std::size_t{index} * sizeof(Ring);
}
inline constexpr std::size_t shared_table_bytes = ring_offset(max_shared_rings);

}  // namespace haul
