// Calls that need a process of one thread, or that stop it with all of its threads while its parent
// still waits in fork(): a child makes them when its copier is gone.
#include <signal.h>
#include <sys/types.h>

#include "preload/born/copier.hpp"
#include "preload/next_function.hpp"

namespace haul::preload {
namespace {

constinit NextFunction<int(int)> next_unshare("unshare"), next_raise("raise");
constinit NextFunction<int(int, int)> next_setns("setns");
constinit NextFunction<int(pid_t, int)> next_kill("kill");

bool stops(int signal) noexcept {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

}  // namespace
}  // namespace haul::preload

using namespace haul::preload;

extern "C" {

[[gnu::visibility("default")]] int unshare(int what) noexcept {
  await_copier();
  return next_unshare.get()(what);
}

[[gnu::visibility("default")]] int setns(int file, int kind) noexcept {
  await_copier();
  return next_setns.get()(file, kind);
}

[[gnu::visibility("default")]] int raise(int signal) noexcept {
  if (stops(signal)) await_copier();
  return next_raise.get()(signal);
}

[[gnu::visibility("default")]] int kill(pid_t process, int signal) noexcept {
  if (stops(signal)) await_copier();
  return next_kill.get()(process, signal);
}

}  // extern "C"
