// The bus to memory: one block at a time, either way. Reads go before writes that have not begun;
// among reads, and among writes, the block that is ready first goes first.
#pragma once

#include <cstdint>
#include <vector>

#include "model/stepped/access.hpp"

namespace bcisim {

class Bus {
 public:
  explicit Bus(unsigned block_cycles) : block_cycles_(block_cycles) {}

  // A block wants the bus from cycle `ready` on. It will be said in `carried` when it has been
  // carried.
  void carry(Cycle ready, bool is_write, Arrival carried);
  // Did something happen?
  bool step(Cycle now);
  // When something may happen next.
  Cycle next_event(Cycle now) const;
  std::uint64_t blocks() const { return sent_; }

 private:
  struct Block {
    Cycle ready;
    bool is_write;
    std::uint64_t number;
    Arrival carried;
    // Both are ready.
    bool before(const Block& other) const {
      if (is_write != other.is_write) return other.is_write;
      return ready != other.ready ? ready < other.ready : number < other.number;
    }
  };

  unsigned block_cycles_;
  Cycle free_ = 0;
  std::uint64_t sent_ = 0;
  std::vector<Block> waiting_;
};

}  // namespace bcisim
