// A model without time: which accesses of instructions miss the L2, and which of these would not
// have missed had copies been neutral on both sides (paper 003, figure 10b: HarmMiss; the others:
// OrigMiss).
#pragma once

#include <bit>
#include <cstdint>

#include "model/bulk_copy.hpp"
#include "model/fast/engine.hpp"
#include "model/fast/memory.hpp"
#include "model/scheme.hpp"

namespace bcisim {

class MissCore {
 public:
  MissCore(const Parameters& parameters, Scheme)
      : parameters_(parameters),
        block_shift_(static_cast<unsigned>(std::countr_zero(parameters.block_bytes))),
        memory_(parameters_, false),
        neutral_memory_(parameters_, false),
        tlb_(parameters_.tlb_entries),
        engine_(parameters_, true) {}
  MissCore(const MissCore&) = delete;
  MissCore& operator=(const MissCore&) = delete;

  void execute(const StaticInstruction& what, const DynamicInstruction& instruction,
               const Reference* references) {
    ++result_.instructions;
    const std::uint64_t code =
        (what.physical_page * page_bytes + what.address % page_bytes) >> block_shift_;
    if (code != code_block_) {
      code_block_ = code;
      access([code](FastMemory& memory, Cycle at) { memory.fetch(code, at); });
    }
    for (unsigned i = 0; i < instruction.references; ++i) {
      const Reference& reference = references[i];
      const std::uint64_t last = (reference.physical + reference.bytes - 1) >> block_shift_;
      for (std::uint64_t block = reference.physical >> block_shift_; block <= last; ++block) {
        access([&](FastMemory& memory, Cycle at) {
          reference.is_store ? memory.store(block, at) : memory.load(block, at);
        });
      }
    }
  }

  void copy(const BulkCopy& copy) {
    ++result_.instructions;
    ++result_.copies;
    result_.copy_bytes += copy.bytes;
    engine_.run(copy, rest(), memory_, tlb_, {});
    BulkCopy neutral = copy;
    neutral.affinities = {Affinity::neutral, Affinity::neutral};
    clock_ = engine_.done();
    engine_.run(neutral, rest(), neutral_memory_, tlb_, {});
    clock_ = engine_.done();
  }

  void device(const DeviceAccess& access) {
    if (access.bytes == 0) return;
    const std::uint64_t first = access.physical >> block_shift_;
    const std::uint64_t last = (access.physical + access.bytes - 1) >> block_shift_;
    for (FastMemory* memory : {&memory_, &neutral_memory_}) {
      if (access.writes) {
        memory->device_writes(first, last);
      } else {
        memory->device_reads(first, last, clock_);
      }
    }
  }

  void interrupt() {}
  void warm(const Checkpoint& checkpoint) {
    memory_.warm(checkpoint);
    neutral_memory_.warm(checkpoint);
  }
  void finish() {}
  Result result() const {
    Result result = result_;
    memory_.report(result);
    result.harmful_l2_misses = harmful_;
    return result;
  }

 private:
  // Every access has the bus for itself.
  Cycle rest() {
    clock_ += 2 * parameters_.memory_cycles;
    memory_.forget_before(clock_);
    neutral_memory_.forget_before(clock_);
    return clock_;
  }

  template <class Access>
  void access(Access&& access) {
    const Cycle at = rest();
    const std::uint64_t before = memory_.l2_misses(), neutral_before = neutral_memory_.l2_misses();
    access(memory_, at);
    access(neutral_memory_, at);
    if (memory_.l2_misses() != before && neutral_memory_.l2_misses() == neutral_before) ++harmful_;
  }

  const Parameters parameters_;
  const unsigned block_shift_;
  FastMemory memory_, neutral_memory_;
  Tlb tlb_;
  FastEngine engine_;
  Cycle clock_ = 0;
  std::uint64_t code_block_ = ~std::uint64_t{0}, harmful_ = 0;
  Result result_;
};

}  // namespace bcisim
