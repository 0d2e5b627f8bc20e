// Cells: payload memory that two processes pass to and fro.
//
// A cell belongs to the segment that one of the two has made, its home, and at any time one of
// them has it. Who has a cell may write a payload there; the packet that names the cell passes it
// on, and from then on the other side has it: it copies the payload out, and then writes its own
// next payload into the same lines. So the lines of an exchange change their core once for each
// message. In a ring they change it twice, there to be read and back to be written, and on
// processors whose cores hand over modified lines each time costs the same. (A Zen 3, 64 KiB, two
// threads that copy in and out: in a ring of 256 KiB 4.0 us between cores that share a cache and
// 18.5 between others, in cells 2.6 and 6.7.)
//
// Who has more cells of the peer's than it will need for its next message gives back those that it
// has had for longest, through the segment they are from. A side that has no small cell left
// writes payloads into its ring, so those are never waited for; pieces of large messages wait for a
// large one, of which the peer keeps no more than half.
//
// A peer that names a cell which it does not have breaks the rules; what else it writes to cells
// spoils payloads alone. Not thread-safe: all calls are made by who calls the outbox and the inbox.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "fabric/transport/local/ring_segment.hpp"

namespace haul::fabric {

// A cell as packets name it: 0: none; else its number from 1, and whether its home is the segment
// of who receives the packet.
using CellName = std::uint8_t;

// The cells of one size in a segment.
struct CellArea {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;  // of a cell
  unsigned count = 0;     // at most cell_count
  RingSegment::Returns* returns = nullptr;
};

class Cells {
 public:
  // most_kept: how many of the peer's are kept for answers, at most.
  explicit Cells(unsigned most_kept) noexcept : most_kept_(most_kept) {}
  // Those in the segments that this process and the peer have made; each may come first, or not at
  // all. They must outlive what is called here.
  void have_own(const CellArea& area) noexcept;
  void have_peers(const CellArea& area) noexcept;

  // ---- to write ----
  // The next cell to write to, by preference one of the peer's; 0: there is none.
  CellName take() noexcept;
  // Its memory.
  std::byte* memory(CellName taken) const noexcept;
  // A packet has left with it.
  void pass(CellName taken) noexcept;
  // How many can be taken now; looks for such as have come back only if there are fewer than
  // wanted.
  unsigned available(unsigned wanted) noexcept;

  // ---- to read ----
  // The payload of a packet from the peer that names this cell; nullptr: the peer does not have it.
  const std::byte* arrived(CellName named) const noexcept;
  // The payload has been read, so this process has the cell, if arrived() knew it.
  void keep(CellName named) noexcept;

 private:
  void take_returns() noexcept;
  void give_back_oldest() noexcept;

  static std::byte* cell_of(const CellArea& area, unsigned number) noexcept {
    return area.memory + number * area.bytes;
  }

  const unsigned most_kept_;
  CellArea own_, peers_;
  // Own cells: those here, the last one came last; and the numbers of those that the peer has.
  std::array<std::uint8_t, cell_count> here_{};
  unsigned here_count_ = 0;
  std::uint32_t away_ = 0;
  std::uint32_t returns_seen_ = 0;
  // The peer's cells that are here, from the oldest to the newest: numbers kept_from_ to kept_to_,
  // each at its number % cell_count; and the set of them.
  std::array<std::uint8_t, cell_count> kept_{};
  unsigned kept_from_ = 0, kept_to_ = 0;
  std::uint32_t kept_set_ = 0;
  std::uint32_t returned_ = 0;
};

// Those of both sizes that two processes pass to and fro. The smaller ones are for what is sent
// unasked, the larger ones for the pieces of messages that were asked for. Each side keeps as many
// as a message of 64 KiB takes, and half of the large ones.
struct PairCells {
  Cells small{8}, large{large_cell_count / 2};

  void have_own(RingSegment& segment) noexcept;
  void have_peers(RingSegment& segment) noexcept;
};

}  // namespace haul::fabric
