// The tags of the caches: two L1 and the L2 behind both. Time is Memory's business: a fill here is
// done when it is called.
#pragma once

#include "model/cache.hpp"

namespace bcisim {

enum class Side { instructions, data };
enum class Level { l1, l2, memory };

class Hierarchy {
 public:
  explicit Hierarchy(const Parameters& parameters);

  // Does an L1 hold it? It is used then, and written.
  bool in_l1(Side side, std::uint64_t block, bool write);
  bool in_l2(std::uint64_t block) { return l2_.find(block) != nullptr; }
  // Puts it into the L1 and the L2, where it is not. How many blocks have to go to memory?
  unsigned fill(Side side, std::uint64_t block, bool dirty);
  // Writes it where it is, in the L1 of data or else in the L2.
  Level write_in_place(std::uint64_t block);
  // Out of all caches; was it dirty?
  bool remove(std::uint64_t block);
  // It stays, clean; was it dirty?
  bool clean(std::uint64_t block);
  void warm(std::uint64_t block, bool dirty);
  // Calls each(block) for every block of every cache.
  template <class Each>
  void for_each(Each&& each) const {
    for (const Cache* cache : {&l1i_, &l1d_, &l2_}) cache->for_each(each);
  }

 private:
  unsigned put_into_l2(std::uint64_t block, bool dirty);

  Cache l1i_, l1d_, l2_;
};

}  // namespace bcisim
