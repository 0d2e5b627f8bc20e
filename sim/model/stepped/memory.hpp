// The memory system: caches, the MSHRs with the fills under way, and the bus.
//
// An access looks the tags up in the cycle in which it starts; a block comes into the tags in the
// cycle in which it is there.
#pragma once

#include <optional>
#include <unordered_set>
#include <vector>

#include "format/chunk.hpp"
#include "model/affinity.hpp"
#include "model/result.hpp"
#include "model/stepped/bus.hpp"
#include "model/stepped/hierarchy.hpp"
#include "model/stepped/write_buffer.hpp"

namespace bcisim {

class Memory {
 public:
  // The figures go into `result`.
  Memory(const Parameters& parameters, bool perfect_cache, Result& result);

  void warm(const Checkpoint& checkpoint);

  // An instruction's access: a fetch, a load, a store.
  Access access(Side side, std::uint64_t block, bool write, Cycle now);

  // A copy reads a source block. One that is not cacheable does not come into the caches.
  Access copy_read(std::uint64_t block, Affinity affinity, Cycle now);
  // A non-cacheable one goes out of the caches after it was read.
  void evict(std::uint64_t block, Cycle now);
  // A copy writes a destination block, or a part of it.
  struct CopyWrite {
    Access access;
    bool in_caches = false;
  };
  CopyWrite copy_write(std::uint64_t block, bool whole, Affinity affinity, Cycle now);
  // A block that was written in the caches goes out of them to memory.
  Access write_out(std::uint64_t block, Cycle now);

  // A device wrote (the block leaves the caches) or read it (it becomes clean).
  void device(std::uint64_t block, bool writes, Cycle now);
  // Calls each(block) for the blocks to which that means something, some of them more than once.
  template <class Each>
  void for_each_there(Each&& each) const {
    caches_.for_each(each);
    if (shadow_) shadow_->for_each(each);
    for (const std::uint64_t block : copied_) each(block);
    for (const Fill& fill : fills_) each(fill.block);
  }

  // The beginning of a cycle: blocks arrive, misses ask. Did something happen?
  bool step(Cycle now);
  // The end of a cycle: the first block that is ready gets the bus if it is free. Did one?
  bool give_bus(Cycle now);
  Cycle next_event(Cycle now) const;
  // Nothing is on its way to the caches.
  bool idle() const { return fills_.empty(); }

 private:
  // A block on its way into the caches, or to a copy alone.
  struct Fill {
    std::uint64_t block = 0;
    Arrival there;
    Cycle asks_at = 0;         // from memory: when the miss is known
    bool from_memory = false;  // else from the L2, or written by a copy
    bool has_mshr = false;
    bool to_instructions = false, to_data = false;  // the L1 that takes it; none: no cache does
    bool dirty = false;
    bool of_instructions = false;  // not copies' alone

    bool comes_into_caches() const { return to_instructions || to_data; }
  };

  Fill* fill_of(std::uint64_t block);
  Fill& start_fill(std::uint64_t block, Cycle asks_at, bool from_memory);
  static void add_side(Fill& fill, Side side);
  void arrive(const Fill& fill, Cycle now);
  void put_in(Hierarchy& caches, const Fill& fill, Cycle now);
  void write_back(unsigned blocks, Cycle now);
  Cycle l1_latency(Side side) const {
    return side == Side::instructions ? parameters_.l1i.latency : parameters_.l1d.latency;
  }
  Cycle search_cycles() const { return parameters_.l1d.latency + parameters_.l2.latency; }

  Parameters parameters_;
  Hierarchy caches_;
  std::optional<Hierarchy>
      shadow_;  // sees everything but copies; an access that hits in either hits
  std::unordered_set<std::uint64_t>
      copied_;  // with a shadow: blocks that copies touched, which hit
  Bus bus_;
  WriteBuffer write_buffer_;
  std::vector<Fill> fills_;  // in the order in which they began
  unsigned mshrs_used_ = 0;
  Result& result_;
};

}  // namespace bcisim
