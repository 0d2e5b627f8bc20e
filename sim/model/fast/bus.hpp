// The memory bus and the MSHRs of the fast model.
//
// Accesses come in program order, which is not the order of time. So the bus is a list of
// transfers, sorted by their cycles, and not a single time from which on it is free: a write takes
// the first gap that is long enough for a block. A read goes before writes: it takes its place as
// if the writes from then on were not there, and those that are in its way look for later gaps. The
// MSHRs are a list of misses with their first and last cycles, and a miss begins in the first cycle
// in which fewer than all are in use. Both lists lose what has ended before the horizon, the cycle
// before which no access will come any more.
#pragma once

#include <vector>

#include "model/parameters.hpp"

namespace bcisim {

class FastBus {
 public:
  explicit FastBus(const Parameters& parameters)
      : transfer_cycles_(parameters.bus_block_cycles()),
        memory_cycles_(parameters.memory_cycles),
        mshrs_(parameters.mshrs) {}

  // A block is wanted from memory from cycle `at` on: when it is there.
  Cycle read(Cycle at);
  // A block is ready to be written to memory at cycle `at`: when the bus has carried it, if no
  // later read goes before it.
  Cycle write(Cycle at);
  // Nothing will be asked at cycles before this one.
  void forget_before(Cycle cycle) { horizon_ = cycle; }
  // Blocks carried so far, both ways.
  std::uint64_t blocks() const { return blocks_; }

 private:
  struct Miss {
    Cycle begin, end;
  };
  struct Transfer {
    Cycle begin;
    bool is_write;
  };
  std::vector<Transfer>::iterator first_after(Cycle& at);
  Cycle with_mshr(Cycle at) const;
  Cycle carry_read(Cycle at);
  Cycle carry_write(Cycle at);
  void forget();

  unsigned transfer_cycles_, memory_cycles_, mshrs_;
  Cycle horizon_ = 0;
  std::vector<Transfer> transfers_;  // by their first cycles
  std::vector<Miss> misses_;
  std::uint64_t blocks_ = 0;
};

}  // namespace bcisim
