#include "atomic/node/signals.hpp"

#include <signal.h>

#include "base/os/keep_errno.hpp"
#include "base/thread/own_threads.hpp"

namespace haul::atomics {

void take_signals_of_nobody() noexcept {
  const KeepErrno keep;
  sigset_t waiting, blocked;
  sigemptyset(&waiting);
  if (sigpending(&waiting) != 0 || sigisemptyset(&waiting) != 0 || !os::only_own_threads()) return;
  pthread_sigmask(SIG_UNBLOCK, &waiting, &blocked);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

}  // namespace haul::atomics
