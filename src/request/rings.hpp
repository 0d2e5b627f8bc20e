// The table of rings: one for each thread that submits, in memory that a fork copies and a ticket
// can be checked against.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/error.hpp"
#include "base/os/os.hpp"
#include "base/thread/stack_mark.hpp"
#include "request/board.hpp"
#include "request/ring_set.hpp"

namespace haul {

// Where each ring lies once it has been made; it stays there for as long as the process lives.
extern constinit std::atomic<Ring*> ring_places[max_rings];

// What every call reads first. The cookie lies in a page of its own that a fork wipes
// (MADV_WIPEONFORK) and the fork handler restores: 0 means that there is no table yet, or that this
// is a bare clone()'s child.
struct RingTable {
  std::atomic<const std::atomic<std::uint32_t>*> cookie_word;
  std::atomic<std::uint32_t> count;  // rings [0, count) exist

  std::uint32_t cookie() const noexcept {
    return cookie_word.load(std::memory_order_acquire)->load(std::memory_order_relaxed);
  }
  Ring& ring(std::uint32_t index) const noexcept {
    return *ring_places[index].load(std::memory_order_relaxed);
  }
};
extern constinit RingTable ring_table;
extern constinit RingSet rings_in_use;

// Counts the forks that led to this process, those of processes that had rings. A function that
// finds the count changed is running in a child that a signal handler forked in the middle of it.
extern constinit std::atomic<std::uint32_t> forks_survived;

// Calls act(ring) for each ring in use. Any thread, no lock.
template <class Act>
void for_each_ring(Act act) noexcept {
  rings_in_use.for_each(ring_table.count.load(std::memory_order_acquire),
                        [&](std::uint32_t index) { act(ring_table.ring(index)); });
}

// Does any thread have a ring? (Those that come and go meanwhile may count or not.)
bool any_ring_owned() noexcept;

// What belongs to the calling thread.
struct ThreadSlot {
  Ring* ring = nullptr;
  std::uint64_t burst_bytes = 0;  // submitted since it last looked at a ticket
  // Bytes that it copied itself while the mover slept, since it last woke the mover.
  std::uint64_t invested = 0;
  unsigned carrying = 0;  // chunks that it has claimed and is copying
  unsigned forking = 0;   // forks that it is in, between the handlers
  bool shared = false;    // its ring lies in memory that the node's service can map (sharing.hpp)
  bool left = false;      // gave up a ring: its thread-specific destructors run
  // True while a submit or a reap changes the ring: a call from a signal handler then copies
  // inline. The program's memory is not touched meanwhile, since a fault's handler may leave by
  // siglongjmp().
  bool busy = false;
  // Marks the stack frame of the inline request for which room in the completion queue is taken.
  const StackMark* reserved = nullptr;
};
extern constinit thread_local ThreadSlot thread_slot;

// Marks the calling thread busy; converts to false if it was busy already, because this call comes
// from a signal handler that interrupted another.
class BusyThread {
 public:
  BusyThread() noexcept : mine_(!thread_slot.busy) {
    thread_slot.busy = true;
    os::compiler_barrier();
  }
  ~BusyThread() { end(); }
  // Ends the marking before the scope does.
  void end() noexcept {
    os::compiler_barrier();
    if (mine_) thread_slot.busy = false;
    mine_ = false;
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
// nullptr with *error when there can be none: the thread's copies are then inline.
Ring* attach_ring(Error* error) noexcept;

// Gives up the calling thread's ring. It comes to rest (rest.hpp) now if its requests have ended,
// else later, when the next thread comes or goes or the mover falls asleep. Runs by itself at
// thread exit. A thread whose destructors ask for a ring again, after the last round in which
// haul's own destructor runs, leaves one behind: it comes to rest when the next thread wants one.
void detach_ring() noexcept;
// The same for one of haul's own threads, which goes on and may want another ring.
void give_up_own_ring() noexcept;

// Puts to rest the rings whose threads have left and whose requests have ended.
void rest_left_rings() noexcept;

// Runs `hook` before a table is made, so that no other thread ever sees a table without the
// handlers that mover/ registers in the hook: in the first thread of a process to submit (in each,
// if several come at once), and again in a bare clone()'s child. No lock is held. Set before any
// submit.
using TableHook = void (*)();
void on_new_table(TableHook hook) noexcept;

// Runs `hook` after a thread has given up its ring.
void on_ring_given_up(TableHook hook) noexcept;

// The table's lock, for sharing.cpp.
void lock_rings() noexcept;
void unlock_rings() noexcept;

// Around fork, once there is a table, with the gate held; no lock is kept. The child keeps the
// calling thread's ring; its own threads may get the others, except those that were not quiet,
// which it abandons. False: there was no memory for the rings, so the child has no table, like a
// bare clone()'s.
void rings_before_fork() noexcept;
void rings_after_fork_parent() noexcept;
bool rings_after_fork_child() noexcept;

}  // namespace haul
