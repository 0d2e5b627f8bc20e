#include "preload/protect/fault_handler.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <atomic>
#include <cstdint>

#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/own_memory.hpp"
#include "base/thread/uncancelled.hpp"
#include "preload/defer/watched.hpp"
#include "preload/next_function.hpp"
#include "preload/protect/protected.hpp"

namespace haul::preload {
namespace {

using Action = struct sigaction;
using Handler = void(int);

constinit NextFunction<int(int, const Action*, Action*)> next_sigaction("sigaction");
constinit NextFunction<int(int, const sigset_t*, sigset_t*)> next_sigprocmask("sigprocmask"),
    next_pthread_sigmask("pthread_sigmask");
constinit NextFunction<Handler*(int, Handler*)> next_signal("signal"),
    next_sysv_signal("sysv_signal"), next_internal_sysv_signal("__sysv_signal"),
    next_ssignal("ssignal"), next_sigset("sigset");
constinit NextFunction<int(int)> next_sighold("sighold"), next_sigignore("sigignore"),
    next_sigblock("sigblock"), next_sigsetmask("sigsetmask");

// off -> on: with the first protected copy. never: the program has other plans with SIGSEGV, or the
// plan is another.
enum class Handling : std::uint8_t { never, off, on };
constinit std::atomic<Handling> handling{Handling::never};
constinit Action before{};  // what was there: the default, however it is written

bool is_default(const Action& action) noexcept {
  return action.sa_handler == SIG_DFL && (action.sa_flags & SA_SIGINFO) == 0;
}

// As if this handler were not there: what was there is the default, which ends the process.
void pass_on(int signal, const siginfo_t* info) noexcept {
  next_sigaction.get()(signal, &before, nullptr);
  // An instruction is repeated, and meets the default; a signal that was sent is sent again.
  // (SA_NODEFER: it is not blocked here.)
  if (const bool is_sent = info->si_code <= 0; is_sent) raise(signal);
}

// The page fault's error code, as x86-64's kernel tells it.
struct FaultCode {
  static constexpr std::uint64_t write_bit = 2, fetch_bit = 16;
  std::uint64_t bits;
  bool is_write() const noexcept { return (bits & write_bit) != 0; }
  bool is_fetch() const noexcept { return (bits & fetch_bit) != 0; }
};

void on_fault(int signal, siginfo_t* info, void* context) noexcept {
  const KeepErrno keep;
  if (info->si_code == SEGV_ACCERR) {
    const Uncancelled uncancelled;
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    if (serve_protected(address)) return;
    // Another thread may have ended the copy since: then the instruction may do now what it could
    // not.
    const auto* frame = static_cast<const ucontext_t*>(context);
    const FaultCode code{static_cast<std::uint64_t>(frame->uc_mcontext.gregs[REG_ERR])};
    if (!code.is_fetch() && os::may_touch(address, code.is_write())) return;
  }
  pass_on(signal, info);
}

bool blocks_faults(const sigset_t* set) noexcept {
  return set != nullptr && sigismember(set, SIGSEGV) == 1;
}

void give_up() noexcept {
  // (A child of vfork() has handlers of its own, and its parent's memory.)
  if (!is_own_process()) return;
  const Handling was = handling.exchange(Handling::never);
  if (was == Handling::never) return;
  protect_no_more();
  if (was != Handling::on) return;
  // A thread that has just touched memory is on its way to the handler.
  constexpr std::uint64_t on_its_way_ns = 2'000'000;
  os::sleep_ns(on_its_way_ns);
  next_sigaction.get()(SIGSEGV, &before, nullptr);
}

bool is_watching() noexcept {
  return handling.load(std::memory_order_relaxed) != Handling::never;
}

// Signals that are named, and sets of old, a bit each from 1 on.
int call_with_signal(NextFunction<int(int)>& next, int signal) noexcept {
  if (is_watching() && signal == SIGSEGV) [[unlikely]]
    give_up();
  return next.get()(signal);
}
int call_with_set(NextFunction<int(int)>& next, int set) noexcept {
  constexpr int fault_bit = 1 << (SIGSEGV - 1);
  if (is_watching() && (set & fault_bit) != 0) [[unlikely]]
    give_up();
  return next.get()(set);
}

// The program blocks these signals.
void note_mask(int how, const sigset_t* set) noexcept {
  if (is_watching() && how != SIG_UNBLOCK && blocks_faults(set)) [[unlikely]]
    give_up();
}

Handler* set_handler(NextFunction<Handler*(int, Handler*)>& next, int signal,
                     Handler* handler) noexcept {
  if (is_watching() && signal == SIGSEGV) [[unlikely]]
    give_up();
  return next.get()(signal, handler);
}

}  // namespace

void expect_faults() noexcept {
  handling.store(Handling::off);
}

void know_signal_functions() noexcept {
  next_sigaction.get();
  next_sigprocmask.get();
  next_pthread_sigmask.get();
  for (auto* next :
       {&next_signal, &next_sysv_signal, &next_internal_sysv_signal, &next_ssignal, &next_sigset})
    next->get();
  for (auto* next : {&next_sighold, &next_sigignore, &next_sigblock, &next_sigsetmask}) next->get();
}

bool ready_to_handle() noexcept {
  const Handling now = handling.load();
  if (now != Handling::off) return now == Handling::on;
  sigset_t blocked;
  if (next_pthread_sigmask.get()(SIG_BLOCK, nullptr, &blocked) != 0 || blocks_faults(&blocked))
    return false;
  const Held held;
  if (handling.load() != Handling::off) return handling.load() == Handling::on;
  Action own{};
  own.sa_sigaction = on_fault;
  // Others wait while a copy is waited for, as they would for memcpy() itself; faults do not.
  sigfillset(&own.sa_mask);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&own.sa_mask, fault);
  own.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  if (next_sigaction.get()(SIGSEGV, nullptr, &before) != 0 || !is_default(before) ||
      next_sigaction.get()(SIGSEGV, &own, nullptr) != 0)
    return false;
  Handling off = Handling::off;
  if (handling.compare_exchange_strong(off, Handling::on)) return true;
  // The program has begun to handle faults meanwhile, and comes after this.
  next_sigaction.get()(SIGSEGV, &before, nullptr);
  return false;
}

void begin_handling() noexcept {
  Action now{};
  if (handling.load() == Handling::on && next_sigaction.get()(SIGSEGV, nullptr, &now) == 0 &&
      is_default(now))
    handling.store(Handling::off);
}

void note_signals(long number, const long* arguments) noexcept {
  if (!is_watching()) return;
  constexpr std::uint64_t fault_bit = std::uint64_t{1} << (SIGSEGV - 1);
  if (number == SYS_rt_sigaction && arguments[0] == SIGSEGV && arguments[1] != 0) give_up();
  if (number == SYS_rt_sigprocmask && arguments[0] != SIG_UNBLOCK && arguments[1] != 0 &&
      (*reinterpret_cast<const std::uint64_t*>(arguments[1]) & fault_bit) != 0)
    give_up();
}

}  // namespace haul::preload

using namespace haul::preload;

extern "C" {

[[gnu::visibility("default")]] int sigaction(int signal, const struct sigaction* action,
                                             struct sigaction* old) noexcept {
  if (is_watching()) [[unlikely]] {
    if (action != nullptr && (signal == SIGSEGV || blocks_faults(&action->sa_mask))) give_up();
    if (action == nullptr && signal == SIGSEGV && old != nullptr &&
        handling.load() == Handling::on) {
      *old = before;
      return 0;
    }
  }
  return next_sigaction.get()(signal, action, old);
}
[[gnu::visibility("default")]] int sigprocmask(int how, const sigset_t* set,
                                               sigset_t* old) noexcept {
  note_mask(how, set);
  return next_sigprocmask.get()(how, set, old);
}
[[gnu::visibility("default")]] int pthread_sigmask(int how, const sigset_t* set,
                                                   sigset_t* old) noexcept {
  note_mask(how, set);
  return next_pthread_sigmask.get()(how, set, old);
}
[[gnu::visibility("default")]] Handler* signal(int number, Handler* handler) noexcept {
  return set_handler(next_signal, number, handler);
}
[[gnu::visibility("default")]] Handler* ssignal(int number, Handler* handler) noexcept {
  return set_handler(next_ssignal, number, handler);
}
[[gnu::visibility("default")]] Handler* sysv_signal(int number, Handler* handler) noexcept {
  return set_handler(next_sysv_signal, number, handler);
}
[[gnu::visibility("default")]] Handler* __sysv_signal(int number, Handler* handler) noexcept {
  return set_handler(next_internal_sysv_signal, number, handler);
}
[[gnu::visibility("default")]] Handler* sigset(int number, Handler* handler) noexcept {
  return set_handler(next_sigset, number, handler);
}
[[gnu::visibility("default")]] int sighold(int number) noexcept {
  return call_with_signal(next_sighold, number);
}
[[gnu::visibility("default")]] int sigignore(int number) noexcept {
  return call_with_signal(next_sigignore, number);
}
[[gnu::visibility("default")]] int sigblock(int set) noexcept {
  return call_with_set(next_sigblock, set);
}
[[gnu::visibility("default")]] int sigsetmask(int set) noexcept {
  return call_with_set(next_sigsetmask, set);
}

}  // extern "C"
