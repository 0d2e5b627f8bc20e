// Where the bytes lie before a copy: in the caller's own cache, in the shared cache, in DRAM, or,
// of a source that another core has just written, with that core.
#pragma once

#include <cstddef>

#include "base/machine/topology.hpp"
#include "bench/kit/buffer.hpp"

namespace haul::bench {

enum class CacheState { hot, l3, cold, peer };

const char* cache_name(CacheState cache);

// Reads every line, so that the calling core holds it.
void touch(const std::byte* data, std::size_t bytes);

// Has another core write what is there already, so that it holds every line.
void rewrite_elsewhere(std::byte* data, std::size_t bytes, unsigned cpu);

// Writes every line back to DRAM and drops it from all caches.
void flush(const std::byte* data, std::size_t bytes);

class CachePreparer {
 public:
  explicit CachePreparer(const Topology& topology);

  // Brings both buffers into that state (peer: as hot; rewrite_elsewhere() does the rest). This
  // core must have been the last to write them.
  void prepare(CacheState cache, const std::byte* a, const std::byte* b, std::size_t bytes);

  // The largest copy whose source and destination together fit the state.
  std::size_t largest(CacheState cache) const;

 private:
  std::size_t l2_bytes_, l3_bytes_;
  Buffer sweep_;
};

}  // namespace haul::bench
