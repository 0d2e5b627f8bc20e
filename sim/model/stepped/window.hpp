// The window: the reorder buffer with what issues, executes and retires, and the load/store queue.
#pragma once

#include <array>
#include <vector>

#include "model/stepped/front_end.hpp"
#include "model/stepped/store_queue.hpp"

namespace bcisim {

class Window {
 public:
  Window(const Parameters& parameters, FrontEnd& front_end, Memory& memory, Engines& engines,
         Tlb& data_tlb, Result& result, Observer& observer);

  // The parts of a cycle, in this order. Did something happen?
  bool start_copy(Cycle now);  // after the engines' step: the oldest instruction may be a copy
  bool execute(Cycle now);     // accesses go on; instructions issue
  bool dispatch(Cycle now);
  unsigned retire(Cycle now);

  bool empty() const { return head_ == tail_; }
  Cycle last_retirement() const { return last_retirement_; }

  // Why nothing retires in this cycle.
  enum class Stall { other, copy_under_way, waits_for_bytes, waits_for_engine, fence };
  Stall stall(Cycle now) const;
  Cycle next_event(Cycle now) const;

 private:
  // A reference of an instruction that has issued.
  struct Progress {
    enum class Stage { translating, waiting, accessing } stage = Stage::translating;
    Cycle translated_at = 0;
    Access access;      // of a load
    Cycle free_at = 0;  // of a store: no copy holds it up
  };
  // An instruction that writes a register, perhaps before it is complete
  // (StaticInstruction::steps).
  struct Producer {
    std::uint64_t number;
    bool steps;
  };
  struct Entry {
    Fetched what;
    Cycle dispatched_at = 0, issued_at = never, complete_at = never;
    std::vector<Producer> producers;  // of what it reads, not ready when seen
    std::array<Progress, most_references> progress;
    bool waits_for_copy = false;  // in this cycle
  };

  Entry& entry(std::uint64_t number) { return entries_[number % entries_.size()]; }
  const Entry& entry(std::uint64_t number) const { return entries_[number % entries_.size()]; }
  bool operands_ready(Entry& entry, Cycle now);
  bool may_issue(Entry& entry, Cycle now);
  void issue(Entry& entry, Cycle now);
  // Brings the references of an instruction on. Did something happen?
  bool advance(Entry& entry, Cycle now);
  bool advance(Entry& entry, unsigned reference, Cycle now);
  void complete(Entry& entry);
  Access access_blocks(const Reference& reference, Cycle now);

  Parameters parameters_;
  FrontEnd& front_end_;
  Memory& memory_;
  Engines& engines_;
  Tlb& data_tlb_;
  Result& result_;
  Observer& observer_;

  std::vector<Entry> entries_;                   // a ring, by number
  std::uint64_t head_ = 0, tail_ = 0;            // numbers: the oldest; one past the youngest
  std::vector<std::uint64_t> unissued_;          // numbers, in order
  std::vector<std::uint64_t> executing_;         // issued, when they will be complete is not known
  std::array<std::uint64_t, registers> writer_;  // number + 1 of the youngest that writes it
  unsigned queue_used_ = 0;
  StoreQueue stores_;
  Cycle last_retirement_ = 0;
};

}  // namespace bcisim
