// The engine of bulk copies for the fast model.
//
// A copy is worked out as a whole in the cycle in which it starts: run() validates its pages, then
// starts its destination blocks in the order of addresses, and asks the memory for each source
// block and each destination block. Blocks under way are kept in two lists, those that are being
// read and those that are being written, so that the memory is asked in the order of time although
// blocks overlap. What remains of a copy afterwards is when each of its blocks is done
// (source_done_, destination_done_): a later instruction or copy that touches the same bytes asks
// load_may() or store_may() for the cycle from which it may go on.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/bulk_copy.hpp"
#include "model/fast/memory.hpp"
#include "model/tlb.hpp"

namespace bcisim {

// One copy at a time; it remembers the last.
class FastEngine {
 public:
  FastEngine(const Parameters& parameters, bool waits_by_block)
      : parameters_(&parameters), waits_by_block_(waits_by_block) {}

  struct Times {
    Cycle validated = 0;  // it may retire early
    Cycle done = 0;
    unsigned tlb_misses = 0;
  };
  // Makes the copy from cycle `at` on; its own copy before is done by then. Blocks that it reads or
  // overwrites wait for the copies of `others`, which are older where they are not done.
  Times run(const BulkCopy& copy, Cycle at, FastMemory& memory, Tlb& tlb,
            std::span<const FastEngine> others);

  // When a younger access to physical addresses (within a page) may go on that could at `at`.
  Cycle load_may(std::uint64_t physical, unsigned bytes, Cycle at) const {
    return at >= times_.done ? at : side_may(destination(), physical, bytes, at);
  }
  Cycle store_may(std::uint64_t physical, unsigned bytes, Cycle at) const {
    if (at >= times_.done) return at;
    at = side_may(destination(), physical, bytes, at);
    return copy_.is_fill ? at : side_may(source(), physical, bytes, at);
  }
  Cycle done() const { return times_.done; }

 private:
  // Of the smallest blocks, 16 bytes.
  using BlockTimes = std::array<Cycle, most_bulk_bytes / 16 + 2>;

  struct Side {
    std::uint64_t begin;  // virtual
    const std::array<std::uint64_t, 2>& pages;
    const BlockTimes& done;
  };
  Side destination() const {
    return {copy_.destination, copy_.destination_pages, destination_done_};
  }
  Side source() const { return {copy_.source, copy_.source_pages, source_done_}; }

  Cycle validate(Cycle at, Tlb& tlb);
  Cycle finish(Cycle at, FastMemory& memory, std::span<const FastEngine> others);
  Cycle free_place(Cycle at, FastMemory& memory);
  Cycle read_block(std::uint64_t offset, unsigned bytes, Cycle at, FastMemory& memory);
  void write_ready_until(Cycle until, FastMemory& memory);
  void write_next(FastMemory& memory);
  Cycle older_copies(std::uint64_t offset, unsigned bytes, Cycle at,
                     std::span<const FastEngine> others) const;
  Cycle side_may(const Side& side, std::uint64_t physical, unsigned bytes, Cycle at) const;
  std::uint64_t block_of(std::uint64_t address) const { return address / parameters_->block_bytes; }

  // A block that is not written yet: when its source is there.
  struct Reading {
    Cycle ready;
    std::uint64_t offset;
    unsigned bytes, pair;
  };

  const Parameters* parameters_;
  bool waits_by_block_;
  BulkCopy copy_;
  Times times_;
  BlockTimes source_done_{}, destination_done_{};  // from the region's first block on
  std::uint64_t source_block_ = 0;                 // read last, virtual, and when it was there
  Cycle source_ready_ = 0;
  // Blocks under way. Of those written when they are done; memory is asked in the order of time, so
  // what is written later than another is read comes after it.
  std::vector<Reading> readings_;
  std::vector<Cycle> writings_;
  std::array<Cycle, 3> pair_done_{};
};

}  // namespace bcisim
