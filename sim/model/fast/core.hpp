// The fast model of the core: one pass over the instructions, each of which is given its cycles of
// fetch, dispatch, completion and retirement when it comes.
//
// No cycle is stepped. Every resource is known by the cycle at which it is free again: registers
// (ready_), the places between fetch and dispatch, the entries of the reorder buffer and of the
// load/store queue (rings of such cycles), the width of fetch, dispatch and retirement (Slots). An
// instruction takes the latest of the cycles of all that it needs, and leaves its own. Stores are
// remembered by the 8-byte words that they write, so that younger loads take their data from them;
// copies by their engines, which say when a block is done.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "format/chunk.hpp"
#include "model/fast/engine.hpp"
#include "model/fast/slots.hpp"
#include "model/predictor.hpp"
#include "model/scheme.hpp"

namespace bcisim {

class FastCore {
 public:
  // The parameters are right (why_wrong()).
  FastCore(const Parameters& parameters, Scheme scheme);
  // Engines refer to the parameters.
  FastCore(const FastCore&) = delete;
  FastCore& operator=(const FastCore&) = delete;

  // What replay calls (model/replay.hpp).
  void execute(const StaticInstruction& what, const DynamicInstruction& instruction,
               const Reference* references);
  void copy(const BulkCopy& copy);
  void device(const DeviceAccess& access);
  void interrupt();

  // Before the first instruction.
  void warm(const Checkpoint& checkpoint) { memory_.warm(checkpoint); }
  // After the last instruction.
  void finish() { last_end_ = copies_done_; }
  // Until the instruction executed last has retired; after finish(), until all copies are done.
  Result result() const;

 private:
  // Cycles in which an instruction could not go on because of a copy.
  struct Wait {
    Cycle from = ~Cycle{0}, until = 0;
    void add(Cycle begin, Cycle end) {
      if (begin >= end) return;
      if (begin < from) from = begin;
      if (end > until) until = end;
    }
  };
  struct Store {
    std::uint64_t word = ~std::uint64_t{0};  // physical address / 8
    Cycle data = 0, written = 0;
  };

  Cycle fetch(std::uint64_t address, std::uint64_t physical_page);
  Cycle dispatch(Cycle at);
  std::size_t queue_entry(Cycle at);
  Cycle operands(std::uint64_t reads, Cycle at) const;
  void produce(std::uint64_t writes, Cycle at);
  Cycle load(const Reference& reference, Cycle at, Wait& wait);
  Cycle store_may(const Reference& reference, Cycle at, Wait& wait);
  Cycle wait_for_copies(const Reference& reference, Cycle at, Wait& wait) const;
  // Was its translation in the TLB?
  bool translate(const Reference& reference) {
    if (dtlb_.touch(reference.address, reference.physical)) return true;
    ++result_.tlb_misses;
    return false;
  }
  Cycle write(const Reference& reference, Cycle data);
  Cycle retire(Cycle at, const Wait& wait);
  Cycle reach_memory(const StaticInstruction& what, unsigned count, const Reference* references,
                     Cycle at, Wait& wait);
  Cycle wait_for_all(Cycle at, Wait& wait) const;
  void redirect(const StaticInstruction& what, bool taken, Cycle complete);
  std::uint64_t block_of(std::uint64_t physical) const { return physical >> block_shift_; }

  static constexpr std::size_t store_words = 1024;

  const Parameters parameters_;
  const SchemeTraits traits_;
  const unsigned block_shift_;
  FastMemory memory_;
  Tlb itlb_, dtlb_;
  Predictor predictor_;
  std::vector<FastEngine> engines_;  // one copy after the other, also where one engine makes them
  std::size_t next_engine_ = 0;
  Cycle copies_done_ = 0, last_end_ = 0;

  Slots fetched_, dispatched_, retired_;
  std::uint64_t fetch_block_ = ~std::uint64_t{0};
  // When registers are ready; no_register always is, nowhere takes what none takes.
  static constexpr unsigned no_register = 63, nowhere = 62;
  std::array<Cycle, 64> ready_{};
  std::vector<Cycle> frontend_, rob_, queue_;  // when the entry's instruction leaves it
  std::size_t frontend_at_ = 0, rob_at_ = 0, queue_at_ = 0;
  std::array<std::size_t, most_references> queue_taken_{};  // by the instruction at hand
  std::vector<Store> stores_;                               // the latest to each word

  Result result_;
};

}  // namespace bcisim
