// The cache that warms a trace that begins in the middle of another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/chunk.hpp"

namespace bcisim {

// 8 MB, 16 ways, blocks of 64 bytes, true LRU; physical addresses.
class BlockCache {
 public:
  static constexpr unsigned ways = 16;
  static constexpr std::size_t sets = 8192;
  // How finely a checkpoint tells recency. Within a class blocks are sorted, so that they cost
  // about a byte each in a trace; a model's cache of 16 ways hardly notices.
  static constexpr std::size_t recency_classes = 16;

  BlockCache();

  void load(std::uint64_t physical, std::uint64_t bytes) { touch_all(physical, bytes, false); }
  void store(std::uint64_t physical, std::uint64_t bytes) { touch_all(physical, bytes, true); }
  // A device wrote the memory: blocks of which a byte was written are gone.
  void invalidate(std::uint64_t physical, std::uint64_t bytes);

  // Begins with what a checkpoint says.
  void fill(const Checkpoint& checkpoint);

  // recency_classes classes of equal size, the least recently used first; each ascending.
  Checkpoint checkpoint() const;

 private:
  struct Way {
    std::uint64_t block = 0;
    std::uint64_t used = 0;  // 0: holds nothing
    bool dirty = false;
  };

  void touch_all(std::uint64_t physical, std::uint64_t bytes, bool dirty);
  void touch(std::uint64_t block, bool dirty);

  std::vector<Way> ways_;  // those of a set one after another
  std::uint64_t now_ = 0;
};

}  // namespace bcisim
