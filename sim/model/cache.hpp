// A set-associative write-back cache with true LRU: which blocks it holds. Tags alone; addresses
// are physical block numbers (address / block bytes).
#pragma once

#include <cstdint>
#include <vector>

#include "model/parameters.hpp"

namespace bcisim {

class Cache {
 public:
  // The parameters are right (why_wrong()).
  Cache(const CacheParameters& parameters, unsigned block_bytes);

  struct Line {
    std::uint64_t block = none;
    Cycle ready_at : 63 = 0;  // when its fill has come
    Cycle dirty : 1 = 0;
  };
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  // nullptr: not there. It is the most recently used then; the pointer holds until the next call.
  Line* find(std::uint64_t block) {
    Line* const set = set_of(block);
    if (set[0].block == block) return set;
    for (unsigned way = 1; way < ways_; ++way) {
      if (set[way].block == block) return to_front(set, way);
    }
    return nullptr;
  }
  // The same, but nothing is used by it.
  const Line* peek(std::uint64_t block) const {
    const Line* const set = &lines_[(block & set_mask_) * ways_];
    for (unsigned way = 0; way < ways_; ++way) {
      if (set[way].block == block) return &set[way];
    }
    return nullptr;
  }
  // Calls each(block) for every block that is there.
  template <class Each>
  void for_each(Each&& each) const {
    for (const Line& line : lines_) {
      if (line.block != none) each(line.block);
    }
  }
  // Puts in what is not there, as the most recently used; returns the line that had to go, one of
  // block none where a way was free.
  Line insert(std::uint64_t block, bool dirty, Cycle ready_at);
  // Takes it out; returns what it was (block none: not there).
  Line remove(std::uint64_t block);

 private:
  Line* set_of(std::uint64_t block) { return &lines_[(block & set_mask_) * ways_]; }
  static Line* to_front(Line* set, unsigned way) {
    const Line line = set[way];
    for (; way > 0; --way) set[way] = set[way - 1];
    set[0] = line;
    return set;
  }

  unsigned ways_;
  std::uint64_t set_mask_;
  std::vector<Line> lines_;  // set by set, each by recency of use, empty ones last
};

}  // namespace bcisim
