// Where the bytes lie before a copy: in the caller's own cache, in the shared one, or in DRAM.
#pragma once

#include <cstddef>

#include "base/topology.hpp"
#include "bench/kit/buffer.hpp"

namespace haul::bench {

enum class CacheState { hot, l3, cold };

const char* cache_name(CacheState cache);

// Reads every line, so that the calling core holds it.
void touch(const std::byte* data, std::size_t bytes);

// Writes every line back to DRAM and drops it from all caches.
void flush(const std::byte* data, std::size_t bytes);

class CachePreparer {
 public:
  explicit CachePreparer(const Topology& topology);

  // Both buffers into the state. Whatever wrote them last did so on this core.
  void prepare(CacheState cache, const std::byte* a, const std::byte* b, std::size_t bytes);

  // The largest copy whose source and destination fit the state together.
  std::size_t largest(CacheState cache) const;

 private:
  std::size_t l2_bytes_, l3_bytes_;
  Buffer sweep_;
};

}  // namespace haul::bench
