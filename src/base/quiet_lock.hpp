// A mutex that is held with signals blocked: no signal handler finds it held by its own thread. It
// is waited for with signals open, so not in the mutex's own queue: whoever is woken there has the
// mutex already.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/os.hpp"

namespace haul {

class QuietLock {
 public:
  explicit QuietLock(pthread_mutex_t& mutex) noexcept : QuietLock(mutex, UINT64_MAX) {}
  // Waits until deadline_ns (now_ns() terms); then it may not be held.
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
