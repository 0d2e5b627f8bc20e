// The heap's state, for heap.cpp and for the child of fork alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/born/lock.hpp"

namespace haul::preload {

// Where allocations lie: the arena of the process that made them. Written once, under the lock; the
// size last (release), so that who sees it (acquire) sees the others.
struct BornHeap {
  std::uintptr_t base = 0;
  // A word for each page: 0 where no allocation begins, else how many pages it has, and `kept`.
  std::atomic<std::uint32_t>* table = nullptr;
  std::atomic<std::size_t> bytes{0};
  // Behind the last page that was ever given out: the table has nothing there.
  std::size_t used_pages = 0;
  // This process is a child of the one that made them: they are private copies now. A fork in a
  // signal handler may set it in the middle of any function here.
  std::atomic<bool> inherited{false};
  // The program has once given some of this memory other rights than to be read and written.
  std::atomic<bool> rights_changed{false};
  // No allocation is born any more: the arena or its table could not be had.
  bool closed = false;
};
extern constinit BornHeap born_heap;
extern constinit HeapMutex born_mutex;

// Freed by the program, and kept with its pages.
inline constexpr std::uint32_t born_kept = std::uint32_t{1} << 31;

// For the child: forgets what is kept. Under the lock.
void forget_kept() noexcept;

}  // namespace haul::preload
