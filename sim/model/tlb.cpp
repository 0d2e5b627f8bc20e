#include "model/tlb.hpp"

#include <algorithm>

namespace bcisim {

unsigned Tlb::index_of(std::uint64_t page) const {
  return static_cast<unsigned>(std::find(pages_.begin(), pages_.end(), page) - pages_.begin());
}

// The least recently used of the unlocked ones; of all, where all are locked.
unsigned Tlb::victim() const {
  unsigned best = 0;
  for (unsigned i = 1; i < pages_.size(); ++i) {
    const bool better =
        (locks_[i] == 0) != (locks_[best] == 0) ? locks_[i] == 0 : used_[i] < used_[best];
    if (better) best = i;
  }
  return best;
}

bool Tlb::touch(std::uint64_t page) {
  last_ = index_of(page);
  const bool was_there = last_ < pages_.size();
  if (!was_there) {
    last_ = victim();
    if (locks_[last_] != 0) ++locked_evictions_;
    pages_[last_] = page;
    locks_[last_] = 0;
  }
  used_[last_] = ++clock_;
  return was_there;
}

void Tlb::change_locks(std::uint64_t page, int by) {
  const unsigned index = index_of(page);
  if (index == pages_.size() || (by < 0 && locks_[index] == 0)) return;
  locks_[index] = static_cast<std::uint16_t>(locks_[index] + by);
}

bool Tlb::invalidate(std::uint64_t page) {
  const unsigned index = index_of(page);
  if (index == pages_.size()) return true;
  if (locks_[index] != 0) return false;
  pages_[index] = none;
  used_[index] = 0;
  return true;
}

}  // namespace bcisim
