#include "model/stepped/hierarchy.hpp"

namespace bcisim {

Hierarchy::Hierarchy(const Parameters& parameters)
    : l1i_(parameters.l1i, parameters.block_bytes),
      l1d_(parameters.l1d, parameters.block_bytes),
      l2_(parameters.l2, parameters.block_bytes) {}

bool Hierarchy::in_l1(Side side, std::uint64_t block, bool write) {
  Cache::Line* const line = (side == Side::instructions ? l1i_ : l1d_).find(block);
  if (line == nullptr) return false;
  if (write) line->dirty = 1;
  return true;
}

unsigned Hierarchy::put_into_l2(std::uint64_t block, bool dirty) {
  if (Cache::Line* const line = l2_.find(block); line != nullptr) {
    if (dirty) line->dirty = 1;
    return 0;
  }
  const Cache::Line gone = l2_.insert(block, dirty, 0);
  return gone.block != Cache::none && gone.dirty != 0 ? 1 : 0;
}

unsigned Hierarchy::fill(Side side, std::uint64_t block, bool dirty) {
  unsigned to_memory = put_into_l2(block, false);
  Cache& l1 = side == Side::instructions ? l1i_ : l1d_;
  if (Cache::Line* const line = l1.find(block); line != nullptr) {
    if (dirty) line->dirty = 1;
    return to_memory;
  }
  const Cache::Line gone = l1.insert(block, dirty, 0);
  if (gone.block != Cache::none && gone.dirty != 0) to_memory += put_into_l2(gone.block, true);
  return to_memory;
}

Level Hierarchy::write_in_place(std::uint64_t block) {
  if (in_l1(Side::data, block, true)) return Level::l1;
  Cache::Line* const line = l2_.find(block);
  if (line == nullptr) return Level::memory;
  line->dirty = 1;
  return Level::l2;
}

bool Hierarchy::remove(std::uint64_t block) {
  l1i_.remove(block);
  const Cache::Line in_l1 = l1d_.remove(block), in_l2 = l2_.remove(block);
  return in_l1.dirty != 0 || in_l2.dirty != 0;
}

bool Hierarchy::clean(std::uint64_t block) {
  bool was_dirty = false;
  for (Cache* const cache : {&l1d_, &l2_}) {
    if (cache->peek(block) == nullptr) continue;
    Cache::Line* const line = cache->find(block);
    was_dirty = was_dirty || line->dirty != 0;
    line->dirty = 0;
  }
  return was_dirty;
}

void Hierarchy::warm(std::uint64_t block, bool dirty) {
  put_into_l2(block, dirty);
}

}  // namespace bcisim
