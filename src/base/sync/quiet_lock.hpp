// A mutex that is held with signals blocked, so that no signal handler finds it held by its own
// thread. It is waited for with signals open, and therefore not in the mutex's own queue, where a
// thread owns the mutex as soon as it is woken: each try blocks signals, tries the lock, and on
// failure restores signals and backs off.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/sync/backoff.hpp"

namespace haul {

class QuietLock {
 public:
  explicit QuietLock(pthread_mutex_t& mutex) noexcept : QuietLock(mutex, UINT64_MAX) {}
  // Waits until deadline_ns (on now_ns()'s clock); after that it may not be held.
  QuietLock(pthread_mutex_t& mutex, std::uint64_t deadline_ns) noexcept : mutex_(mutex) {
    for (Backoff backoff; !take(); backoff.pause()) {
      if (deadline_ns != UINT64_MAX && now_ns() >= deadline_ns) return;
    }
    held_ = true;
  }
  ~QuietLock() {
    if (!held_) return;
    pthread_mutex_unlock(&mutex_);
    os::restore_signals(saved_);
  }
  explicit operator bool() const noexcept { return held_; }
  QuietLock(const QuietLock&) = delete;
  QuietLock& operator=(const QuietLock&) = delete;

 private:
  bool take() noexcept {
    os::block_signals(&saved_);
    if (pthread_mutex_trylock(&mutex_) == 0) return true;
    os::restore_signals(saved_);
    return false;
  }

  pthread_mutex_t& mutex_;
  bool held_ = false;
  os::SignalMask saved_;
};

}  // namespace haul
