// What this process's movers and callers have done, for haul_query and the tests. Relaxed: nothing
// is decided by them.
#pragma once

#include <atomic>
#include <cstdint>

namespace haul {

struct Counters {
  std::atomic<std::uint64_t> helped_chunks{0}, moved_chunks{0}, failed{0};
};
inline constinit Counters counters;

inline void count_helped() noexcept {
  counters.helped_chunks.fetch_add(1, std::memory_order_relaxed);
}
inline void count_moved_chunk() noexcept {
  counters.moved_chunks.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace haul
