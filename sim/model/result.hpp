// What a model says of a run.
#pragma once

#include <cstdint>

namespace bcisim {

struct Result {
  std::uint64_t instructions = 0;  // retired; a bulk copy counts as one
  std::uint64_t cycles = 0;  // until the last instruction has retired and the last copy is done
  // Cycles in which nothing retired because of copies: the oldest instruction was a copy under way;
  // it waited for a copy's bytes; it was a copy that waited for the engine; it was a fence.
  std::uint64_t rob_clog_cycles = 0, dependence_cycles = 0, engine_cycles = 0, fence_cycles = 0;
  std::uint64_t copies = 0, copy_bytes = 0;  // bulk instructions
  std::uint64_t copy_cycles = 0;             // of all, each from its start at the engine to its end
  std::uint64_t branches = 0, mispredicted = 0;
  std::uint64_t tlb_misses = 0;  // both
  // Accesses of instructions (fetches, loads, stores), not of copies.
  std::uint64_t accesses = 0, l1_misses = 0, l2_misses = 0;
  std::uint64_t harmful_l2_misses = 0;  // of these, copies' doing (model/misses/ alone knows)
  std::uint64_t copy_l2_misses = 0;     // blocks that copies brought from memory
  std::uint64_t bus_blocks = 0;         // both ways
};

// What came after an earlier result of the same run.
Result since(const Result& earlier, Result later);

}  // namespace bcisim
