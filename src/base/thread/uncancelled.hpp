// Disables cancellation in a scope: no call of haul's is a cancellation point, so pthread_cancel()
// never unwinds a thread out of it while it holds a lock, a claimed chunk or a descriptor. A
// request that arrives meanwhile stays pending until the program's own next cancellation point.
//
// Every function of base/ that calls a cancellation point of POSIX has one; so must code elsewhere
// that calls such a function directly (pthread_join, poll, read, close ...). About 2 ns.
#pragma once

#include <pthread.h>

namespace haul {

class Uncancelled {
 public:
  Uncancelled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace haul
