#include "model/cache.hpp"

namespace bcisim {

Cache::Cache(const CacheParameters& parameters, unsigned block_bytes)
    : ways_(parameters.ways),
      set_mask_(parameters.bytes / block_bytes / parameters.ways - 1),
      lines_(parameters.bytes / block_bytes) {}

Cache::Line Cache::insert(std::uint64_t block, bool dirty, Cycle ready_at) {
  Line* const set = set_of(block);
  const Line gone = set[ways_ - 1];
  Line& line = *to_front(set, ways_ - 1);
  line.block = block;
  line.ready_at = ready_at & (~Cycle{0} >> 1);
  line.dirty = dirty ? 1 : 0;
  return gone;
}

Cache::Line Cache::remove(std::uint64_t block) {
  Line* const set = set_of(block);
  for (unsigned way = 0; way < ways_; ++way) {
    if (set[way].block != block) continue;
    const Line line = set[way];
    for (; way + 1 < ways_; ++way) set[way] = set[way + 1];
    set[ways_ - 1] = Line{};
    return line;
  }
  return Line{};
}

}  // namespace bcisim
