// The process's control thread: it sleeps in epoll, and accepts peers, notices their death and
// hears their bells while the program computes. It starts with the first endpoint and ends with the
// last. It blocks all asynchronous signals. If the program closes its descriptors, it opens others
// within a second and tells its clients what they have lost. When only haul's threads are left in
// the process, it ends within a second, so that the process can end.
//
// One lock covers everything that it shares with the endpoints. The thread holds the lock while it
// works, never while it sleeps. Code under the lock takes microseconds and calls no libhaul
// function that takes a lock, because a fork waits for it (fork_window.hpp).
#pragma once

#include <pthread.h>

#include <cstdint>

#include "base/error.hpp"
#include "base/os/descriptor.hpp"
#include "base/sync/quiet_lock.hpp"
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

// A client of the thread. Every call is made under the lock.
class Subscriber {
 public:
  // A descriptor that it watches can be read, or was closed: by the other side, or by the program,
  // when the descriptor is no longer intact. It is told so once, and then watched no more.
  virtual void ready(std::uint64_t watch) noexcept = 0;
  // Does what is due by time. Returns in how many ms to call again; -1: not before nudge().
  virtual int tick() noexcept = 0;
  // This is a child of fork, with one thread: descriptors and what peers share belong to the
  // parent. No control thread works for the client any more.
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
