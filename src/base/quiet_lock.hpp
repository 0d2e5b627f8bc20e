// A mutex that is held with signals blocked: no signal handler finds it held by its own thread.
#pragma once

#include <pthread.h>

#include "base/os.hpp"

namespace haul {

class QuietLock {
 public:
  explicit QuietLock(pthread_mutex_t& mutex) noexcept : mutex_(mutex) {
    os::block_signals(&saved_);
    pthread_mutex_lock(&mutex_);
  }
  ~QuietLock() {
    pthread_mutex_unlock(&mutex_);
    os::restore_signals(saved_);
  }
  QuietLock(const QuietLock&) = delete;
  QuietLock& operator=(const QuietLock&) = delete;

 private:
  pthread_mutex_t& mutex_;
  os::SignalMask saved_;
};

}  // namespace haul
