// Packets through memory that two processes share. A segment carries one direction, from its writer
// to its reader: a ring of packets, an area for the pieces of large messages, credits that the
// reader returns, and the claims of transfers that both sides work on.
//
// Writing. The writer reserves room, fills in header and payload, and stores the header's last
// word, `ready`, with release. Its value is the packet's position in the stream (never the same
// twice) mixed with a random number of the segment's. So neither an older packet nor a payload that
// lies there from an earlier turn can be taken for a new header, no flag has to be cleared, and a
// packet of up to 32 bytes is one cache line, moved once. Reading. The reader knows the next
// position, and so the value that its `ready` will have; it loads that word with acquire, which
// carries header and payload, and copies the header out, since the writer may be hostile and change
// it. Room. The reader counts what it has consumed and stores the count, in quarters of the ring,
// with release; the writer loads it with acquire, only when the ring seems full, and believes no
// more than it has written. Sleeping. Before a reader sleeps it sets `armed` and makes a memory
// barrier in all running threads (membarrier), then looks once more. The writer's load of `armed`
// after `ready` needs no barrier of its own: either it sees `armed` and rings the doorbell, or the
// reader sees the packet.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/private.hpp"
#include "fabric/protocol/transport_contract.hpp"

namespace haul::fabric {

inline constexpr std::size_t ring_bytes = std::size_t{256} << 10;
inline constexpr std::size_t bulk_bytes = std::size_t{512} << 10;
inline constexpr std::size_t ring_packet_bytes = std::size_t{32} << 10;
inline constexpr std::size_t ring_piece_bytes = std::size_t{64} << 10;

// The shared memory, zeroed and sealed when it is made. `salt` is set by the writer before it hands
// the segment over; the reader takes it once.
struct RingSegment {
  std::uint64_t salt = 0;
  // Written by the reader.
  alignas(128) std::atomic<std::uint64_t> consumed{0};  // bytes of the ring
  std::atomic<std::uint64_t> bulk_consumed{0};          // bytes of the bulk area
  alignas(128) std::atomic<std::uint32_t> armed{0};     // 1: ring the doorbell
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
  alignas(4096) std::byte bulk[bulk_bytes];
};
inline constexpr std::size_t segment_bytes = (sizeof(RingSegment) + 4095) / 4096 * 4096;

// The writer's side. Not thread-safe.
class RingOutbox final : public Outbox {
 public:
  using Doorbell = void (*)(void* argument) noexcept;
  // The segment must outlive the outbox. doorbell(argument) runs within commit() when the reader
  // sleeps.
  RingOutbox(RingSegment& segment, Doorbell doorbell, void* argument,
             const HaulPrivateRing& ring) noexcept;

  // From the next message on it writes like this; messages of more than in_parts_bytes are asked
  // for, and parts and pieces are no longer than the ring takes, whatever it says.
  void write_as(const HaulPrivateRing& ring) noexcept;
  // From now on the writer tells which cache it writes from, and writes as `near` says where that
  // is the reader's, else as `far` says; both move now and then, so this is looked at again once
  // in a quarter of the ring.
  struct Whereabouts {
    const HaulPrivateRing *near = nullptr, *far = nullptr;
    int (*cache_of)(int cpu) noexcept = nullptr;  // haul_private_cache_of()
    // The word of the reader's own segment; nullptr: it has none yet.
    const std::atomic<std::uint32_t>* reader_cache = nullptr;
  };
  void follow(const Whereabouts& whereabouts) noexcept;

  Slot reserve(std::size_t payload_bytes, Lane lane) noexcept override;
  void commit() noexcept override;
  std::size_t piece_bytes(std::size_t whole) const noexcept override;
  bool holds(std::size_t bytes) noexcept override;

 private:
  bool has_room(std::uint64_t bytes, std::uint64_t keep_free) noexcept;
  void publish(Header& header, std::uint64_t position) noexcept;
  void own_ahead(std::uint64_t bytes) const noexcept;
  std::byte* reserve_bulk(std::size_t payload_bytes) noexcept;
  void look_at_distance() noexcept;

  RingSegment& segment_;
  const std::uint64_t salt_;
  std::uint64_t head_ = 0;       // bytes written to the ring since it was made
  std::uint64_t next_head_ = 0;  // after commit()
  std::uint64_t consumed_ = 0;   // as last read
  std::uint64_t parted_ = 0;     // bytes so far of the message that is written in parts
  std::uint64_t bulk_head_ = 0, next_bulk_head_ = 0, bulk_consumed_ = 0;
  Header* slot_ = nullptr;
  HaulPrivateRing ring_;  // in use
  Whereabouts whereabouts_;
  std::uint64_t looked_at_ = 0;  // head_ then
  int cpu_ = -1;
  Doorbell doorbell_;
  void* argument_;
};

// The reader's side. Not thread-safe. Nothing in the segment can make it read outside of it.
class RingInbox final : public Inbox {
 public:
  explicit RingInbox(RingSegment& segment) noexcept;

  Got receive(ReceivedPacket& packet) noexcept override;
  void release() noexcept override;

 private:
  Header& at(std::uint64_t position) noexcept;
  void expect(std::uint64_t position) noexcept;

  RingSegment& segment_;
  const std::uint64_t salt_;
  std::uint64_t position_ = 0, returned_ = 0, packet_end_ = 0;
  std::uint64_t bulk_position_ = 0, bulk_returned_ = 0, bulk_end_ = 0;
};

}  // namespace haul::fabric
