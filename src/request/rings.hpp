// The table of rings: one for each thread that submits, in memory that a fork copies and a ticket
// can be checked against.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/error.hpp"
#include "base/os.hpp"
#include "request/board.hpp"

namespace haul {

// What every call reads first. The cookie lies in a page of its own that a fork wipes
// (MADV_WIPEONFORK) and the fork handler restores: 0 means not yet made, or a child that came by a
// bare clone.
struct RingTable {
  std::atomic<const std::atomic<std::uint32_t>*> cookie_word;
  std::atomic<Ring*> rings;          // max_rings of them, reserved; untouched ones cost nothing
  std::atomic<std::uint32_t> count;  // rings [0, count) exist

  std::uint32_t cookie() const noexcept {
    return cookie_word.load(std::memory_order_acquire)->load(std::memory_order_relaxed);
  }
  Ring& ring(std::uint32_t index) const noexcept {
    return rings.load(std::memory_order_relaxed)[index];
  }
};
extern constinit RingTable ring_table;

// What belongs to the calling thread.
struct ThreadSlot {
  Ring* ring = nullptr;
  std::uint64_t burst_bytes = 0;  // submitted since it last looked at a ticket
  // Bytes it copied itself while the mover slept, since it last woke it.
  std::uint64_t invested = 0;
  unsigned carrying = 0;  // chunks that it has claimed and is copying
  bool forking = false;   // between the fork handlers
  bool shared = false;    // its ring lies in memory that the node's service can map (sharing.hpp)
  bool busy = false;      // within a submit or a reap: a signal handler's call copies inline
};
extern constinit thread_local ThreadSlot thread_slot;

// Marks the calling thread busy; false if it is already, because this call is a signal handler's in
// the middle of another.
class BusyThread {
 public:
  BusyThread() noexcept : mine_(!thread_slot.busy) {
    thread_slot.busy = true;
    os::compiler_barrier();
  }
  ~BusyThread() {
    os::compiler_barrier();
    if (mine_) thread_slot.busy = false;
  }
  BusyThread(const BusyThread&) = delete;
  BusyThread& operator=(const BusyThread&) = delete;
  explicit operator bool() const noexcept { return mine_; }

 private:
  bool mine_;
};

// The calling thread's ring if it has one that is of this process.
inline Ring* own_ring() noexcept {
  Ring* ring = thread_slot.ring;
  return ring != nullptr && ring->cookie == ring_table.cookie() ? ring : nullptr;
}

// The calling thread's ring, made or adopted on first use (then: allocation, locks, system calls).
// nullptr with *error when none is to be had: the thread's copies are then inline.
Ring* attach_ring(Error* error) noexcept;

// Gives up the calling thread's ring; another thread may adopt it once it is quiet. Runs at thread
// exit by itself.
void detach_ring() noexcept;

// Runs `hook` each time a table is made: in the first thread of a process to submit, and again in a
// child by a bare clone. mover/ hangs its handlers here. Set before any submit.
using TableHook = void (*)();
void on_new_table(TableHook hook) noexcept;

// The table's lock, for sharing.cpp.
void lock_rings() noexcept;
void unlock_rings() noexcept;

// Around fork, once there is a table: before takes its lock; the child keeps the calling thread's
// ring and abandons the others'.
void rings_before_fork() noexcept;
void rings_after_fork_parent() noexcept;
void rings_after_fork_child() noexcept;

}  // namespace haul
