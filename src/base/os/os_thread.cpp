// System calls about the calling thread, and the one way in which haul starts a thread.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/machine/clock.hpp"
#include "base/machine/topology.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/thread/thread_stack.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {

namespace {

constexpr std::size_t word_bits = 8 * sizeof(unsigned long);

// The kernel's largest mask has 8192 CPUs, and it refuses a buffer shorter than its own mask.
struct KernelMask {
  unsigned long words[8192 / word_bits] = {};
};

// The mask that a thread had before it was pinned. CPUs past max_cpus are left out here too.
struct SavedMask {
  unsigned long words[max_cpus / word_bits] = {};
  bool saved = false;
};
constinit thread_local SavedMask saved_mask = {};

// Ordinary scheduling, whatever the maker's: a mover that inherited SCHED_FIFO would spin on a core
// and let nobody else run there.
int schedule_ordinarily(pthread_attr_t* attributes) noexcept {
  const sched_param none{};
  int error = pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED);
  if (error == 0) error = pthread_attr_setschedpolicy(attributes, SCHED_OTHER);
  if (error == 0) error = pthread_attr_setschedparam(attributes, &none);
  return error;
}

sigset_t asynchronous_signals() noexcept {
  sigset_t set;
  sigfillset(&set);
  for (const int synchronous : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS}) {
    sigdelset(&set, synchronous);
  }
  return set;
}

}  // namespace

void block_signals(SignalMask* saved) noexcept {
  static_assert(sizeof(sigset_t) <= sizeof saved->bytes);
  const sigset_t blocked = asynchronous_signals();
  pthread_sigmask(SIG_BLOCK, &blocked, reinterpret_cast<sigset_t*>(saved->bytes));
}

void restore_signals(const SignalMask& saved) noexcept {
  pthread_sigmask(SIG_SETMASK, reinterpret_cast<const sigset_t*>(saved.bytes), nullptr);
}

bool blocks_asynchronous(std::uint64_t kernel_mask) noexcept {
  const sigset_t blocked = asynchronous_signals();
  constexpr int last_standard_signal = 31;
  for (int signal = 1; signal <= last_standard_signal; ++signal) {
    if (signal == SIGKILL || signal == SIGSTOP || sigismember(&blocked, signal) != 1) continue;
    if ((kernel_mask >> (signal - 1) & 1) == 0) return false;
  }
  return true;
}

bool on_alternate_stack() noexcept {
  const KeepErrno keep;
  stack_t now{};
  return sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_ONSTACK) != 0;
}

int current_cpu() noexcept {
  const KeepErrno keep;
  return sched_getcpu();
}

pid_t process_id() noexcept {
  return getpid();
}

pid_t thread_id() noexcept {
  return gettid();
}

bool thread_lives(pid_t process, pid_t thread) noexcept {
  const KeepErrno keep;
  constexpr int no_signal = 0;
  return syscall(SYS_tgkill, process, thread, no_signal) == 0 || errno != ESRCH;
}

namespace {

// Returns 0 if the kernel does not say. `thread` 0 is the calling thread.
unsigned count_cpus(pid_t thread, KernelMask* mask) noexcept {
  if (sched_getaffinity(thread, sizeof *mask, reinterpret_cast<cpu_set_t*>(mask->words)) != 0) {
    return 0;
  }
  unsigned count = 0;
  for (const unsigned long word : mask->words) count += static_cast<unsigned>(std::popcount(word));
  return count;
}

}  // namespace

unsigned allowed_cpus() noexcept {
  const KeepErrno keep;
  KernelMask own, main;
  return std::max({count_cpus(0, &own), count_cpus(getpid(), &main), 1u});
}

void widen_mask() noexcept {
  const KeepErrno keep;
  KernelMask own, main;
  if (count_cpus(getpid(), &main) > count_cpus(0, &own)) {
    sched_setaffinity(0, sizeof main, reinterpret_cast<cpu_set_t*>(main.words));
  }
}

bool pin_thread(unsigned cpu) noexcept {
  const KeepErrno keep;
  if (cpu >= max_cpus) return false;
  KernelMask mask;
  if (!saved_mask.saved) {
    if (sched_getaffinity(0, sizeof mask, reinterpret_cast<cpu_set_t*>(mask.words)) != 0) {
      return false;
    }
    memcpy(saved_mask.words, mask.words, sizeof saved_mask.words);
  }
  mask = {};
  mask.words[cpu / word_bits] = 1ul << (cpu % word_bits);
  if (sched_setaffinity(0, sizeof mask, reinterpret_cast<cpu_set_t*>(mask.words)) != 0) {
    return false;
  }
  saved_mask.saved = true;
  return true;
}

void avoid_cpu(unsigned cpu) noexcept {
  const KeepErrno keep;
  KernelMask mask;
  if (cpu >= max_cpus || count_cpus(0, &mask) < 2) return;
  mask.words[cpu / word_bits] &= ~(1ul << (cpu % word_bits));
  sched_setaffinity(0, sizeof mask, reinterpret_cast<cpu_set_t*>(mask.words));
}

bool unpin_thread() noexcept {
  const KeepErrno keep;
  if (!saved_mask.saved) return true;
  if (sched_setaffinity(0, sizeof saved_mask.words,
                        reinterpret_cast<cpu_set_t*>(saved_mask.words)) != 0) {
    return false;
  }
  saved_mask.saved = false;
  return true;
}

bool real_time_thread() noexcept {
  const KeepErrno keep;
  const int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

void lowest_priority() noexcept {
  const KeepErrno keep;
  // Linux keeps this value for each thread. Not SCHED_IDLE: on a busy machine such a thread could
  // stand still for minutes while it holds a lock.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
}

void shortest_slices() noexcept {
  const KeepErrno keep;
  // What <linux/sched/types.h> calls sched_attr: that header and <sched.h> define the same names.
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t slice_ns, deadline_ns, period_ns;
  } attributes{};
  attributes.size = sizeof attributes;
  constexpr std::uint64_t least_slice_ns = 100'000;  // that the kernel takes
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 ||
      attributes.policy != SCHED_OTHER)
    return;
  attributes.slice_ns = least_slice_ns;
  attributes.flags = 0;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void name_thread(const char* name) noexcept {
  const KeepErrno keep;
  prctl(PR_SET_NAME, name, 0, 0, 0);  // the kernel cuts at 15 bytes
}

unsigned user_id() noexcept {
  return geteuid();
}

int start_thread(pthread_t* thread, void* (*body)(void*), void* argument) noexcept {
  const KeepErrno keep;
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error != 0) return -error;
  error = schedule_ordinarily(&attributes);
  if (error == 0) {
    // The new thread inherits the mask, so there is no instant in which it could take a signal.
    const sigset_t blocked = asynchronous_signals();
    sigset_t callers;
    error = pthread_sigmask(SIG_BLOCK, &blocked, &callers);
    if (error == 0) {
      error = create_thread(thread, &attributes, body, argument);
      pthread_sigmask(SIG_SETMASK, &callers, nullptr);
    }
  }
  pthread_attr_destroy(&attributes);
  return -error;
}

void join_thread(pthread_t thread) noexcept {
  const Uncancelled guard;
  pthread_join(thread, nullptr);
  release_stack_of(thread);
}

void detach_self() noexcept {
  pthread_detach(pthread_self());
  release_own_stack();
}

void sleep_ns(std::uint64_t ns) noexcept {
  const Uncancelled guard;
  // An absolute deadline: signals neither shorten nor lengthen the sleep.
  const std::uint64_t end_ns = now_ns() + ns;
  timespec end = {};
  end.tv_sec = static_cast<time_t>(end_ns / 1'000'000'000u);
  end.tv_nsec = static_cast<long>(end_ns % 1'000'000'000u);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR) {
  }
}

std::uint64_t unix_time_s() noexcept {
  const KeepErrno keep;
  const time_t now = time(nullptr);
  return now > 0 ? static_cast<std::uint64_t>(now) : 0;
}

void yield() noexcept {
  const KeepErrno keep;
  sched_yield();
}

}  // namespace haul::os
