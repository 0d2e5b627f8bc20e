#include "model/stepped/bus.hpp"

#include <algorithm>

namespace bcisim {

void Bus::carry(Cycle ready, bool is_write, Arrival carried) {
  waiting_.push_back({ready, is_write, sent_++, std::move(carried)});
}

bool Bus::step(Cycle now) {
  bool active = false;
  while (free_ <= now && !waiting_.empty()) {
    auto first = waiting_.end();
    for (auto block = waiting_.begin(); block != waiting_.end(); ++block) {
      if (block->ready <= now && (first == waiting_.end() || block->before(*first))) first = block;
    }
    if (first == waiting_.end()) break;
    free_ = now + block_cycles_;
    *first->carried = free_;
    waiting_.erase(first);
    active = true;
  }
  return active;
}

Cycle Bus::next_event(Cycle now) const {
  Cycle next = never;
  for (const Block& block : waiting_) next = next_of(std::max(block.ready, free_), now, next);
  return next;
}

}  // namespace bcisim
