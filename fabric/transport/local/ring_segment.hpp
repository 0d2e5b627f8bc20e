// The memory that one direction between two processes shares: a ring of packets, cells for their
// payloads and larger ones for the pieces of large messages, what the reader returns, and the
// claims of transfers that both sides work on. Both sides have mapped all of it to read and to
// write, so each takes what lies there for what a hostile peer may have put there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fabric/protocol/transport_contract.hpp"

namespace haul::fabric {

inline constexpr std::size_t ring_bytes = std::size_t{128} << 10;
inline constexpr std::size_t ring_packet_bytes = std::size_t{32} << 10;
inline constexpr unsigned cell_count = 32, large_cell_count = 16;
inline constexpr std::size_t cell_bytes = std::size_t{8} << 10;
inline constexpr std::size_t large_cell_bytes = std::size_t{32} << 10;

// Zeroed and sealed when it is made. `salt` is set by the writer before it hands the segment over;
// the reader takes it once.
struct RingSegment {
  std::uint64_t salt = 0;
  // Set by the reader's process, whatever its program does, when it has mapped the segment.
  std::atomic<std::uint32_t> accepted{0};
  // Written by the reader.
  alignas(128) std::atomic<std::uint64_t> consumed{0};  // bytes of the ring
  alignas(128) std::atomic<std::uint32_t> armed{0};     // 1: ring the doorbell
  // Written by the reader: how many cells of a size it has given back that it did not send back,
  // and which; number n is at n % cell_count.
  struct alignas(128) Returns {
    std::atomic<std::uint32_t> count{0};
    std::atomic<std::uint8_t> cells[cell_count];
  };
  Returns returns, large_returns;
  // Written by the writer: the CPU on which it was when it last described memory, plus 1; 0: it is
  // unknown.
  alignas(128) std::atomic<std::uint32_t> writer_cpu{0};
  // Also: the last-level cache of its CPU (haul_private_cache_of()), plus 1; 0: it is unknown.
  std::atomic<std::uint32_t> writer_cache{0};
  struct alignas(128) Claim {
    std::atomic<std::uint64_t> word{0};
  };
  Claim claims[DirectAccess::claim_count];
  alignas(4096) std::byte ring[ring_bytes];
  // Written by whoever has the cell (cells.hpp).
  alignas(4096) std::byte cells[cell_count][cell_bytes];
  alignas(4096) std::byte large_cells[large_cell_count][large_cell_bytes];
};
inline constexpr std::size_t segment_bytes = (sizeof(RingSegment) + 4095) / 4096 * 4096;

}  // namespace haul::fabric
