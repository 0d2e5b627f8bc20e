// Packets through memory that two processes share (ring_segment.hpp), in one direction. Payloads
// lie behind their header in the ring; in cells, which both directions use by turns (cells.hpp);
// or, the pieces of large messages, in an area of their own.
//
// Writing. The writer reserves room, fills in header and payload, and stores the header's last
// word, `ready`, with release. Its value is the packet's position in the stream (never the same
// twice) mixed with a random number of the segment's. So neither an older packet nor a payload that
// lies there from an earlier turn can be taken for a new header, no flag has to be cleared, and a
// packet of up to 32 bytes is one cache line, moved once. Reading. The reader knows the next
// position, and so the value that its `ready` will have; it loads that word with acquire, which
// carries header and payload, and copies the header out, since the writer may be hostile and change
// it. Room. The reader counts what it has consumed and stores the count, in eighths of the ring,
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
#include "fabric/transport/local/cells.hpp"
#include "fabric/transport/local/ring_segment.hpp"

namespace haul::fabric {

class RingInbox;

// The writer's side. Not thread-safe.
class RingOutbox final : public Outbox {
 public:
  using Doorbell = void (*)(void* argument) noexcept;
  // The segment must outlive the outbox, and so must the cells, which the inbox of the other
  // direction uses, too; nullptr: there are none, and so no bulk lane. doorbell(argument) runs
  // within commit() when the reader sleeps.
  RingOutbox(RingSegment& segment, Doorbell doorbell, void* argument, const HaulPrivateRing& ring,
             PairCells* cells = nullptr) noexcept;

  // From the next message on it writes like this; messages of more than in_parts_bytes are asked
  // for, and parts and pieces are no longer than the ring takes, whatever it says.
  void write_as(const HaulPrivateRing& ring) noexcept;
  // From now on the writer tells which cache it writes from, and writes as `near` says where that
  // is the reader's, else as `far` says; both move now and then, so this is looked at again once
  // in a quarter of the ring.
  struct Whereabouts {
    const HaulPrivateRing *near = nullptr, *far = nullptr;
    int (*cache_of)(int cpu) noexcept = nullptr;  // haul_private_cache_of()
    // Of the other direction, if it is open: it copies out as this side writes.
    RingInbox* inbox = nullptr;
    // The word of the reader's own segment; nullptr: it has none yet.
    const std::atomic<std::uint32_t>* reader_cache = nullptr;
  };
  void follow(const Whereabouts& whereabouts) noexcept;

  Slot reserve(std::size_t payload_bytes, Lane lane) noexcept override;
  void commit() noexcept override;
  bool holds(std::size_t bytes) noexcept override;
  Delivery delivery() noexcept override;

 private:
  bool has_room(std::uint64_t bytes, std::uint64_t keep_free) noexcept;
  void publish(Header& header, std::uint64_t position) noexcept;
  void own_ahead(std::uint64_t bytes) const noexcept;
  bool goes_in_cell(std::size_t payload_bytes) const noexcept;
  // A cell that was taken, and not passed on yet; 0: none was.
  struct Taken {
    Cells* from = nullptr;
    CellName name = 0;
  };
  static Taken* taken(Taken& cell) noexcept;
  void look_at_distance() noexcept;

  RingSegment& segment_;
  const std::uint64_t salt_;
  std::uint64_t head_ = 0;       // bytes written to the ring since it was made
  std::uint64_t next_head_ = 0;  // after commit()
  std::uint64_t consumed_ = 0;   // as last read
  // Of the message that is written in parts: its bytes so far, and those of the ring that it takes.
  std::uint64_t parted_ = 0, parted_space_ = 0;
  Header* slot_ = nullptr;
  PairCells* const cells_;
  // A cell of each size, and that of the slot's payload, if it has one.
  Taken small_, large_;
  Taken* cell_ = nullptr;
  HaulPrivateRing ring_;  // in use
  Whereabouts whereabouts_;
  std::uint64_t looked_at_ = 0;  // head_ then
  int cpu_ = -1;
  bool accepted_ = false;
  Doorbell doorbell_;
  void* argument_;
};

// The reader's side. Not thread-safe. Nothing in the segment can make it read outside of it.
class RingInbox final : public Inbox {
 public:
  // `cells`: as RingOutbox has them.
  explicit RingInbox(RingSegment& segment, PairCells* cells = nullptr) noexcept;

  // From the next packet on.
  void read_as(const HaulPrivateRing& ring) noexcept { copies_out_ = ring.copies_out; }

  Got receive(ReceivedPacket& packet) noexcept override;
  // Of the packet behind the one that receive() gave last, if it is there and has a cell: where its
  // payload lies; else nullptr. As it says itself: its length may be anything.
  struct NextPayload {
    const std::byte* at = nullptr;
    std::uint64_t bytes = 0;
  };
  NextPayload next_payload() const noexcept;
  void ask_ahead() const noexcept override;
  void fetch_ahead() const noexcept override;
  void release() noexcept override;

 private:
  Header& at(std::uint64_t position) const noexcept;
  void expect(std::uint64_t position) noexcept;

  RingSegment& segment_;
  const std::uint64_t salt_;
  PairCells* const cells_;
  // Of the packet that receive() gave last.
  Cells* kind_ = nullptr;
  CellName cell_ = 0;
  HaulPrivateCopy copies_out_ = HaulPrivateCopy::strings;
  std::uint64_t position_ = 0, returned_ = 0, packet_end_ = 0;
};

}  // namespace haul::fabric
