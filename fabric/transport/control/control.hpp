// The process's control thread: it sleeps in epoll, and accepts peers, notices their death and
// hears their bells while the program computes. It starts with the first endpoint and ends with the
// last. All asynchronous signals are blocked in it. Where the program closes its descriptors it
// makes others, within a second, and tells the clients what they have lost. It also ends, within a
// second, where only haul's threads are left of the process, so that the process can end.
//
// One lock covers whatever it shares with the endpoints. The thread holds it while it works, never
// while it sleeps. What is done under it takes microseconds, and calls no libhaul function that
// takes a lock: a fork waits for it (fork_window.hpp).
#pragma once

#include <pthread.h>

#include <cstdint>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "base/quiet_lock.hpp"
#include "fabric/transport/control/fork_window.hpp"

namespace haul::fabric::control {

extern constinit pthread_mutex_t mutex;

class ControlLock {
 public:
  ControlLock() noexcept { fork_window::note_change(); }

 private:
  fork_window::Newcomer newcomer_;  // waits before the mutex is taken
  QuietLock held_{mutex};
};

// Whom the thread works for. Every call is made under the lock.
class Subscriber {
 public:
  // A descriptor that it watches can be read, or was closed: by the other side, or by the program,
  // when the descriptor is no longer intact. It is told so once, and then watched no more.
  virtual void ready(std::uint64_t watch) noexcept = 0;
  // What must be done by time. In how many ms again; -1: not before nudge().
  virtual int tick() noexcept = 0;
  // This is a child of fork, with one thread: descriptors and what peers share are the parent's.
  // The client is of no thread's any more.
  virtual void forked() noexcept = 0;

 protected:
  ~Subscriber() = default;
};

// ---- without the lock ----
// Begins to work for a client; starts the thread if it does not run.
Expected<bool> join(Subscriber& client) noexcept;
// No call of the client is under way or follows. Ends the thread with its last client. Nothing
// where this process is a child of the one that joined.
void leave(Subscriber& client) noexcept;

// ---- under the lock ----
// Watches a descriptor until unwatch(); returns a name that is never used again, 0 without memory.
std::uint64_t watch(Subscriber& client, const os::Descriptor& descriptor) noexcept;
void unwatch(std::uint64_t watch) noexcept;
// Have tick() called soon.
void nudge() noexcept;

}  // namespace haul::fabric::control
