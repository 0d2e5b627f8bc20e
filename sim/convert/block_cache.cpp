#include "convert/block_cache.hpp"

#include <algorithm>

namespace bcisim {

namespace {

constexpr std::uint64_t block_bytes = 64;

}  // namespace

BlockCache::BlockCache() : ways_(sets * ways) {}

void BlockCache::touch(std::uint64_t block, bool dirty) {
  Way* const set = &ways_[block % sets * ways];
  Way* oldest = set;
  ++now_;
  for (Way* way = set; way != set + ways; ++way) {
    if (way->used != 0 && way->block == block) {
      way->used = now_;
      way->dirty = way->dirty || dirty;
      return;
    }
    if (way->used < oldest->used) oldest = way;
  }
  *oldest = {block, now_, dirty};
}

void BlockCache::touch_all(std::uint64_t physical, std::uint64_t bytes, bool dirty) {
  for (std::uint64_t block = physical / block_bytes; block <= (physical + bytes - 1) / block_bytes;
       ++block)
    touch(block, dirty);
}

void BlockCache::invalidate(std::uint64_t physical, std::uint64_t bytes) {
  const std::uint64_t first = physical / block_bytes, last = (physical + bytes - 1) / block_bytes;
  const auto drop = [](Way& way) { way = {}; };
  if (last - first >= ways_.size()) {  // cheaper than to look for each
    for (Way& way : ways_)
      if (way.block >= first && way.block <= last) drop(way);
    return;
  }
  for (std::uint64_t block = first; block <= last; ++block) {
    Way* const set = &ways_[block % sets * ways];
    for (Way* way = set; way != set + ways; ++way)
      if (way->used != 0 && way->block == block) drop(*way);
  }
}

void BlockCache::fill(const Checkpoint& checkpoint) {
  for (const Checkpoint::Block& block : checkpoint.blocks) touch(block.number, block.dirty);
}

Checkpoint BlockCache::checkpoint() const {
  std::vector<Way> held;
  for (const Way& way : ways_)
    if (way.used != 0) held.push_back(way);
  std::sort(held.begin(), held.end(), [](const Way& a, const Way& b) { return a.used < b.used; });
  for (std::size_t i = 0; i < recency_classes; ++i) {
    const auto limit = [&](std::size_t number) {
      return held.begin() + static_cast<std::ptrdiff_t>(held.size() * number / recency_classes);
    };
    std::sort(limit(i), limit(i + 1), [](const Way& a, const Way& b) { return a.block < b.block; });
  }
  Checkpoint made;
  for (const Way& way : held) made.blocks.push_back({way.block, way.dirty});
  return made;
}

}  // namespace bcisim
