// Stores from their dispatch until their block is there: younger loads of the same words take their
// data from here.
#pragma once

#include <cstdint>
#include <vector>

#include "format/instruction.hpp"
#include "model/stepped/access.hpp"

namespace bcisim {

class StoreQueue {
 public:
  // Stores of an instruction, by the order of instructions (`number`).
  void add(std::uint64_t number, const Reference& store) {
    stores_.push_back({number, store.physical / 8, (store.physical + store.bytes - 1) / 8, never,
                       false, Access()});
  }
  // The instruction is complete at `at`: its stores have address and data then.
  void complete(std::uint64_t number, Cycle at) {
    for (Store& store : stores_) {
      if (store.number == number) store.data_at = at;
    }
  }
  // The instruction retired, and its next store (in the order of add()) goes to the cache.
  void write(std::uint64_t number, const Access& access) {
    for (Store& store : stores_) {
      if (store.number == number && !store.is_writing) {
        store.is_writing = true;
        store.access = access;
        return;
      }
    }
  }
  // Removes those whose block is there: how many?
  unsigned drain(Cycle now) {
    return static_cast<unsigned>(std::erase_if(stores_, [now](const Store& store) {
      return store.is_writing && store.access.done() <= now;
    }));
  }

  struct Match {
    bool found = false;  // a word of an older store
    Cycle data_at = 0;   // never: not known yet
  };
  Match match(std::uint64_t number, const Reference& load) const {
    Match match;
    const std::uint64_t first = load.physical / 8, last = (load.physical + load.bytes - 1) / 8;
    for (const Store& store : stores_) {
      if (store.number >= number) break;
      if (store.first_word > last || store.last_word < first) continue;
      match.found = true;
      match.data_at = std::max(match.data_at, store.data_at);
    }
    return match;
  }

  Cycle next_event(Cycle now) const {
    Cycle next = never;
    for (const Store& store : stores_) {
      if (store.is_writing) next = next_of(store.access.done(), now, next);
    }
    return next;
  }

 private:
  struct Store {
    std::uint64_t number, first_word, last_word;
    Cycle data_at;
    bool is_writing;
    Access access;
  };
  std::vector<Store> stores_;  // the oldest first
};

}  // namespace bcisim
