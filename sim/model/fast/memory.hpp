// Both levels of caches and the memory behind them, for the fast model: when an access that begins
// at some cycle has its block.
//
// Accesses come in program order. A block is put into the caches when it is asked for, with the
// cycle at which its fill arrives (Line::ready_at): a later access finds it there and waits until
// then, so fills under way need no list of their own. For the scheme with a perfect cache there is
// a second set of tags, the shadow, which sees everything but copies; an access hits where either
// has the block, or where a copy has touched it.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "format/chunk.hpp"
#include "model/affinity.hpp"
#include "model/cache.hpp"
#include "model/fast/bus.hpp"
#include "model/result.hpp"

namespace bcisim {

class FastMemory {
 public:
  // perfect: accesses of instructions also hit what would be there had no copy ever touched the
  // caches, and what copies have touched (003, I: "perfect cache").
  FastMemory(const Parameters& parameters, bool perfect);

  // Blocks are physical block numbers. When the instruction's block, the data are there.
  Cycle fetch(std::uint64_t block, Cycle at) {
    return access(levels_.l1i, l1i_latency_, block, at, false);
  }
  Cycle load(std::uint64_t block, Cycle at) {
    return access(levels_.l1d, l1d_latency_, block, at, false);
  }
  Cycle store(std::uint64_t block, Cycle at) {
    return access(levels_.l1d, l1d_latency_, block, at, true);
  }

  // An access that needed no cache.
  void count_forwarded() { ++accesses_; }

  // A block of a copy's source is read; when the bytes are there.
  Cycle read_source(std::uint64_t block, Affinity affinity, Cycle at);
  // A block of its destination is written, of which `whole` says that all bytes are; when it is
  // done.
  Cycle write_destination(std::uint64_t block, Affinity affinity, bool whole, Cycle at);

  // A device writes memory, or reads it: blocks first to last.
  void device_writes(std::uint64_t first, std::uint64_t last);
  void device_reads(std::uint64_t first, std::uint64_t last, Cycle at);

  // What the caches hold at the beginning.
  void warm(const Checkpoint& checkpoint);
  // Nothing will be asked at cycles before this one.
  void forget_before(Cycle cycle) { bus_.forget_before(cycle); }
  std::uint64_t l2_misses() const { return l2_misses_; }
  // The fields of accesses, misses and the bus.
  void report(Result& result) const;

 private:
  struct Levels {
    explicit Levels(const Parameters& p)
        : l1i(p.l1i, p.block_bytes), l1d(p.l1d, p.block_bytes), l2(p.l2, p.block_bytes) {}
    Cache l1i, l1d, l2;
  };

  Cycle access(Cache& l1, unsigned l1_latency, std::uint64_t block, Cycle at, bool is_store) {
    ++accesses_;
    if (shadow_.empty()) {
      if (Cache::Line* const line = l1.find(block)) {
        if (is_store) line->dirty = 1;
        const Cycle hit = at + l1_latency;
        return line->ready_at > hit ? filled(*line, hit) : hit;
      }
    }
    return access_further(l1, l1_latency, block, at, is_store);
  }
  // When a block that is under way is there. The access that asked for it is earlier in the
  // program, but may be later in time: then the block comes as if this access had asked for it.
  Cycle filled(Cache::Line& line, Cycle looked_up) const {
    const Cycle own = looked_up + l2_latency_ + memory_cycles_;
    if (line.ready_at > own) line.ready_at = own & (~Cycle{0} >> 1);
    return line.ready_at;
  }
  Cycle access_further(Cache& l1, unsigned l1_latency, std::uint64_t block, Cycle at,
                       bool is_store);
  void settle(Levels& levels, Cache& l1, std::uint64_t block, bool is_store, Cycle ready);
  void put_in_l1(Levels& levels, Cache& l1, std::uint64_t block, bool dirty, Cycle ready);
  void put_in_l2(Levels& levels, std::uint64_t block, bool dirty, Cycle ready);
  bool take_out_data(Levels& levels, std::uint64_t block);

  Cycle to_memory(Cycle at);
  static bool clean(Levels& levels, std::uint64_t block);
  template <class Each>
  void for_each_there(std::uint64_t first, std::uint64_t last, Each&& each) const;

  const unsigned l1i_latency_, l1d_latency_, l2_latency_, memory_cycles_, block_bytes_;
  const bool reads_destination_;
  Levels levels_;
  std::vector<Levels> shadow_;                // none, or the one that copies never touch
  std::unordered_set<std::uint64_t> copied_;  // blocks, if there is a shadow: since a device wrote
  FastBus bus_;
  std::vector<Cycle> write_buffer_;  // when each entry is free
  std::uint64_t accesses_ = 0, l1_misses_ = 0, l2_misses_ = 0, copy_l2_misses_ = 0;
};

}  // namespace bcisim
