// What the pending calls (pending.hpp) and the sampled pages (samples.hpp) of this process share:
// the userfaultfd by which their memory is watched, and the lock of both tables.
//
// The lock is held with signals blocked, for system calls that copy at most 64 KiB (of a huge page
// that is brought back, 2 MiB), or that map, move or protect one call's pages; and for as long as a
// whole call takes where a mover has failed. Nobody touches memory of the program while holding it,
// but for the kernel; nobody calls what guards.cpp takes over; and nobody drops or unmaps what is
// watched, since the kernel would wait for the thread that serves, and that one for the lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/sync/process_lock.hpp"

namespace haul::preload {

struct Bounds {
  std::uintptr_t begin = 0, end = 0;
  constexpr bool overlaps(const Bounds& other) const noexcept {
    return begin < other.end && other.begin < end;
  }
};

// The lock of all that is watched, for a scope.
class Held {
 public:
  Held() noexcept;
  ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  os::SignalMask mask_;
};

// The userfaultfd; -1: none.
int userfault() noexcept;
void set_userfault(int fd) noexcept;

// How many calls and sampled pages are watched: a load.
unsigned watched_count() noexcept;
// Under the lock, before and after memory is watched; add_watched() says where it lies.
void one_more_watched() noexcept;
void one_less_watched() noexcept;
void add_watched(const Bounds& range) noexcept;
// Ends the watching of a range. Where the kernel refuses for now, as the process has as many
// mappings as it may have, the range is owed: it counts as watched, and end_owed() tries again.
// True: it is over. Under the lock, as the next two.
bool end_watch(const Bounds& range) noexcept;
bool end_owed() noexcept;  // is nothing owed any more?
// What is owed must not be watched again.
bool is_owed(const Bounds& range) noexcept;
// Could some of this range be watched? No lock. (Between the lowest and the highest address that
// was watched since nothing was. Whoever may touch a call's memory knows that it has returned, so
// this thread sees what was noted before.)
bool may_be_watched(const Bounds& range) noexcept;
// Sleeps until some are, 50 ms are over, or somebody says that nobody should.
void await_watched() noexcept;
void end_await() noexcept;

// Is this the process that this memory belongs to? A child of vfork() is not, and must not take the
// lock, which goes by process.
bool is_own_process() noexcept;

// Addresses for pages that are put aside, without any of their own; nullptr: not now, or new memory
// comes with its pages (mlockall()), and so much would be too much. os::unmap() gives them back.
void* map_empty(std::size_t bytes) noexcept;

// From begin_fork() on, until as many end_fork(), nothing more is watched: what the child would
// find missing, nobody would bring there.
void begin_fork() noexcept;
void end_fork() noexcept;
bool is_forking() noexcept;  // under the lock

// At the start, and in a child of fork: nothing is watched.
void begin_watching() noexcept;

}  // namespace haul::preload
