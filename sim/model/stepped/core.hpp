// The cycle-stepped model of the machine (model/README.md): plain and slow, to check the fast one.
#pragma once

#include "model/stepped/window.hpp"

namespace bcisim {

class SteppedCore {
 public:
  // The parameters are right (why_wrong()).
  SteppedCore(const Parameters& parameters, Scheme scheme);
  SteppedCore(const SteppedCore&) = delete;
  SteppedCore& operator=(const SteppedCore&) = delete;

  // What the L2 holds. Before the first instruction.
  void warm(const Checkpoint& checkpoint) { memory_.warm(checkpoint); }

  // The trace, in its order (model/replay.hpp).
  void execute(const StaticInstruction& what, const DynamicInstruction& instruction,
               const Reference* references);
  void copy(const BulkCopy& copy) { take(copy); }
  void device(const DeviceAccess& access) { take(access); }
  void interrupt() { take(Interrupt{}); }
  // No more comes.
  void finish();
  // Until the last retirement; after finish(), until all copies are done.
  Result result() const;

  // For tests. Exceptions in page validation; the data TLB, whose pages copies lock; time; whether
  // cycles in which nothing happens are skipped (they are).
  void set_page_fault(PageFault fault) { engines_.set_page_fault(std::move(fault)); }
  void set_observer(Observer observer) { observer_ = std::move(observer); }
  Tlb& data_tlb() { return data_tlb_; }
  Cycle now() const { return now_; }
  void set_skipping(bool skipping) { skips_ = skipping; }

 private:
  void take(Item item);
  void step();
  void attribute(Window::Stall stall, Cycle cycles);
  Cycle next_event() const;

  Parameters parameters_;
  Result result_;
  Observer observer_;
  Tlb data_tlb_;
  Memory memory_;
  Engines engines_;
  FrontEnd front_end_;
  Window window_;
  Cycle now_ = 0;
  bool skips_ = true, is_finished_ = false;
};

}  // namespace bcisim
