// The write-combining buffer: blocks that copies write to memory past the caches.
#pragma once

#include <algorithm>
#include <vector>

#include "model/stepped/access.hpp"
#include "model/stepped/bus.hpp"

namespace bcisim {

class WriteBuffer {
 public:
  // Without entries a block is done when the bus has carried it, else when it has an entry.
  WriteBuffer(unsigned entries, Bus& bus) : entries_(entries), bus_(bus) {}

  // A block is whole in cycle `ready`.
  Access add(Cycle ready, Cycle now) {
    Arrival done = std::make_shared<Cycle>(never);
    if (entries_ == 0) {
      bus_.carry(ready, true, done);
    } else {
      waiting_.push_back({ready, done});
      step(now);
    }
    return Access(ready, std::move(done));
  }

  // The beginning of a cycle. Did something happen?
  bool step(Cycle now) {
    std::erase_if(carried_, [now](const Arrival& carried) { return *carried <= now; });
    bool active = false;
    while (!waiting_.empty() && carried_.size() < entries_) {
      const auto first = std::min_element(
          waiting_.begin(), waiting_.end(),
          [](const Block& one, const Block& other) { return one.ready < other.ready; });
      if (first->ready > now) break;
      *first->has_entry = now;
      waiting_.erase(first);
      carried_.push_back(std::make_shared<Cycle>(never));
      bus_.carry(now, true, carried_.back());
      active = true;
    }
    return active;
  }

  Cycle next_event(Cycle now) const {
    if (waiting_.empty()) return never;
    Cycle next = never;
    for (const Block& block : waiting_) next = next_of(block.ready, now, next);
    for (const Arrival& carried : carried_) next = next_of(*carried, now, next);
    return next;
  }

 private:
  struct Block {
    Cycle ready;
    Arrival has_entry;
  };

  unsigned entries_;
  Bus& bus_;
  std::vector<Block> waiting_;    // in the order in which they came
  std::vector<Arrival> carried_;  // of those with entries
};

}  // namespace bcisim
