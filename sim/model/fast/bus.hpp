// The memory bus and the MSHRs, when accesses come in program order though they overlap in time:
// what is taken is known by its cycles, and what comes later in the program but earlier in time
// takes what is free before it.
#pragma once

#include <cstddef>
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
