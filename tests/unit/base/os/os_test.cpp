#include "base/os/os.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "base/machine/clock.hpp"
#include "base/machine/topology.hpp"

namespace haul {
namespace {

// ---- futex ----

TEST(Futex, AWordThatHasChangedDoesNotSleep) {
  std::atomic<std::uint32_t> word{1};
  errno = EXDEV;
  EXPECT_EQ(os::futex_wait(&word, 0, 0), -EAGAIN);
  EXPECT_EQ(errno, EXDEV);
}

TEST(Futex, TimesOut) {
  std::atomic<std::uint32_t> word{0};
  EXPECT_EQ(os::futex_wait(&word, 0, 1'000'000), -ETIMEDOUT);
}

TEST(Futex, WakesASleeper) {
  std::atomic<std::uint32_t> word{0};
  std::atomic<bool> woken{false};
  std::thread sleeper([&] {
    while (word.load(std::memory_order_acquire) == 0) os::futex_wait(&word, 0, 0);
    woken.store(true, std::memory_order_release);
  });
  // Only once it sleeps there is someone to wake.
  while (os::futex_wake(&word, 1) == 0) os::yield();
  word.store(1, std::memory_order_release);
  while (!woken.load(std::memory_order_acquire)) os::futex_wake(&word, INT_MAX);
  sleeper.join();
}

// ---- barriers and memory ----

TEST(Membarrier, WorksOnceRegistered) {
  if (!os::membarrier_register()) GTEST_SKIP() << "the kernel or a filter refuses membarrier";
  EXPECT_TRUE(os::membarrier());
}

TEST(Memory, IsZeroedAndGivenBack) {
  const std::size_t bytes = 3 * 4096;
  auto* memory = static_cast<unsigned char*>(os::map_anonymous(bytes));
  ASSERT_NE(memory, nullptr);
  for (std::size_t i = 0; i < bytes; i += 512) EXPECT_EQ(memory[i], 0);
  memory[bytes - 1] = 1;
  os::unmap(memory, bytes);
  unsigned char resident;
  EXPECT_NE(mincore(memory, 4096, &resident), 0) << "still mapped";
  os::unmap(nullptr, 4096);
}

TEST(Memory, TooMuchOrNoneIsNull) {
  errno = EXDEV;
  EXPECT_EQ(os::map_anonymous(std::size_t{1} << 62), nullptr);
  EXPECT_EQ(os::map_anonymous(0), nullptr);
  EXPECT_EQ(errno, EXDEV);
}

TEST(Memory, WipeOnForkIsZeroInTheChildOnly) {
  auto* page = static_cast<volatile int*>(os::map_anonymous(4096));
  ASSERT_NE(page, nullptr);
  ASSERT_TRUE(os::wipe_on_fork(const_cast<int*>(page), 4096));
  *page = 7;
  const pid_t child = fork();
  if (child == 0) _exit(*page == 0 ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*page, 7);
  os::unmap(const_cast<int*>(page), 4096);
  EXPECT_FALSE(os::wipe_on_fork(const_cast<int*>(page) + 1, 1)) << "unaligned";
}

// ---- threads ----

TEST(Thread, KnowsItsCpuAndItself) {
  EXPECT_GE(os::current_cpu(), 0);
  EXPECT_EQ(os::thread_id(), gettid());
}

std::string own_mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  std::string text;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) text += CPU_ISSET(cpu, &mask) ? '1' : '0';
  return text;
}

TEST(Thread, PinsAndGoesBackToItsFormerMask) {
  const auto topology = read_topology("");
  ASSERT_TRUE(topology);
  std::thread([&] {
    const std::string before = own_mask();
    EXPECT_TRUE(os::unpin_thread()) << "nothing to do";
    EXPECT_EQ(own_mask(), before);
    for (unsigned i = 0; i < topology->allowed_count && i < 4; ++i) {
      const unsigned cpu = topology->allowed[i].cpu;
      ASSERT_TRUE(os::pin_thread(cpu));
      EXPECT_EQ(own_mask().find('1'), cpu);
      EXPECT_EQ(own_mask().rfind('1'), cpu);
      EXPECT_EQ(os::current_cpu(), static_cast<int>(cpu));
    }
    EXPECT_FALSE(os::pin_thread(max_cpus));
    EXPECT_FALSE(os::pin_thread(max_cpus - 1)) << "this machine has no such CPU";
    EXPECT_TRUE(os::unpin_thread());
    EXPECT_EQ(own_mask(), before);
  }).join();
}

TEST(Thread, ALongNameIsCut) {
  std::thread([] {
    os::name_thread("haul-mover-with-a-long-name");
    char name[16] = {};
    prctl(PR_GET_NAME, name, 0, 0, 0);
    EXPECT_STREQ(name, "haul-mover-with");
  }).join();
}

TEST(Thread, TheLowestPriorityIsThatThreadsOnly) {
  const auto nice_here = [] { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); };
  const int before = nice_here();
  int inside = -1;
  std::thread([&] {
    os::lowest_priority();
    inside = nice_here();
  }).join();
  EXPECT_EQ(inside, 19);
  EXPECT_EQ(nice_here(), before);
}

// Linux 6.12 tells the slice; before it is 0.
std::uint64_t slice_here_ns() {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t slice_ns, deadline_ns, period_ns;
  } attributes{};
  EXPECT_EQ(syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0), 0);
  return attributes.slice_ns;
}

TEST(Thread, ShortestSlicesAreThisThreadsAlone) {
  const std::uint64_t before = slice_here_ns();
  if (before == 0) GTEST_SKIP() << "this kernel has no slices of single threads";
  std::uint64_t inside = 0;
  int nice_inside = -1;
  std::thread([&] {
    os::lowest_priority();
    os::shortest_slices();
    inside = slice_here_ns();
    nice_inside = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
  }).join();
  EXPECT_LT(inside, before);
  EXPECT_EQ(nice_inside, 19);
  EXPECT_EQ(slice_here_ns(), before);
}

TEST(Process, TheUserIsTheEffectiveOne) {
  EXPECT_EQ(os::user_id(), geteuid());
}

struct Seen {
  sigset_t mask;
  std::size_t stack_bytes = 0;
};

void* look(void* argument) {
  auto* seen = static_cast<Seen*>(argument);
  pthread_sigmask(SIG_BLOCK, nullptr, &seen->mask);
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstacksize(&attributes, &seen->stack_bytes);
  pthread_attr_destroy(&attributes);
  return argument;
}

TEST(Thread, StartsWithAsynchronousSignalsBlockedAndASmallStack) {
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  Seen seen;
  pthread_t thread;
  ASSERT_EQ(os::start_thread(&thread, look, &seen), 0);
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, &seen);
  for (const int blocked :
       {SIGINT, SIGTERM, SIGALRM, SIGPROF, SIGCHLD, SIGUSR1, SIGRTMIN, SIGRTMAX}) {
    EXPECT_EQ(sigismember(&seen.mask, blocked), 1) << blocked;
  }
  for (const int open : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS}) {
    EXPECT_EQ(sigismember(&seen.mask, open), 0) << open;
  }
  EXPECT_GE(seen.stack_bytes, std::size_t{256} << 10);
  EXPECT_LE(seen.stack_bytes, std::size_t{4} << 20);
  sigset_t after;
  pthread_sigmask(SIG_BLOCK, nullptr, &after);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
  }
}

TEST(Thread, SleepsAtLeastAsLongEvenIfSignalsArrive) {
  struct sigaction action = {};
  struct sigaction former = {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, &former);
  std::atomic<bool> done{false};
  const pthread_t sleeper = pthread_self();
  std::thread pest([&] {
    while (!done.load(std::memory_order_relaxed)) {
      pthread_kill(sleeper, SIGUSR1);
      usleep(1000);
    }
  });
  const std::uint64_t start_ns = now_ns();
  os::sleep_ns(20'000'000);
  EXPECT_GE(now_ns() - start_ns, 20'000'000u);
  done.store(true, std::memory_order_relaxed);
  pest.join();
  sigaction(SIGUSR1, &former, nullptr);
}

// ---- processes ----

TEST(Process, APidfdTellsWhenItsProcessEnds) {
  int hold[2];
  ASSERT_EQ(pipe2(hold, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(hold[1]);
    char byte;
    [[maybe_unused]] const ssize_t got = read(hold[0], &byte, 1);
    _exit(0);
  }
  const int pidfd = os::pidfd_open(child);
  ASSERT_GE(pidfd, 0);
  EXPECT_NE(fcntl(pidfd, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_TRUE(os::pidfd_alive(pidfd));
  close(hold[1]);
  close(hold[0]);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(os::pidfd_alive(pidfd));
  os::close_fd(pidfd);
  EXPECT_EQ(os::pidfd_open(child), -ESRCH);
}

TEST(Process, ABadPidfdIsNotAlive) {
  errno = EXDEV;
  EXPECT_FALSE(os::pidfd_alive(-1));
  EXPECT_FALSE(os::pidfd_alive(1 << 20));
  EXPECT_EQ(os::pidfd_open(-5), -EINVAL);
  os::close_fd(-1);
  EXPECT_EQ(errno, EXDEV);
}

TEST(Process, ReadsAndWritesMemory) {
  char there[16] = "over there";
  char here[16] = {};
  iovec local = {here, 10};
  iovec remote = {there, 10};
  const ssize_t got = os::read_process(getpid(), &local, 1, &remote, 1);
  if (got == -EPERM || got == -ENOSYS) GTEST_SKIP() << "process_vm_readv is refused";
  EXPECT_EQ(got, 10);
  EXPECT_STREQ(here, "over there");
  memcpy(here, "from here!", 10);
  EXPECT_EQ(os::write_process(getpid(), &local, 1, &remote, 1), 10);
  EXPECT_STREQ(there, "from here!");
  errno = EXDEV;
  remote.iov_base = nullptr;
  EXPECT_EQ(os::read_process(getpid(), &local, 1, &remote, 1), -EFAULT);
  EXPECT_EQ(os::write_process(getpid(), &local, 1, &remote, 1), -EFAULT);
  EXPECT_EQ(errno, EXDEV);
}

// A child whose main thread has ended and whose other thread lives until it is killed.
pid_t child_without_main_thread() {
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pthread_t thread;
  const auto stay = [](void*) -> void* {
    for (;;) pause();
  };
  if (pthread_create(&thread, nullptr, stay, nullptr) != 0) _exit(1);
  syscall(SYS_exit, 0);
  return -1;
}

TEST(Process, ReadsAndWritesMemoryAfterItsMainThreadHasEnded) {
  static volatile char there[16] = "over there";
  char here[16] = {};
  const iovec local = {here, 10}, remote = {const_cast<char*>(there), 10};
  const ssize_t own = os::read_process(getpid(), &local, 1, &remote, 1);
  if (own == -EPERM || own == -ENOSYS) GTEST_SKIP() << "process_vm_readv is refused";
  const pid_t child = child_without_main_thread();
  // The kernel's own answer, when it has ended.
  ssize_t got = 0;
  for (int turn = 0; turn < 5000 && got >= 0; ++turn) {
    os::sleep_ns(1'000'000);
    got = process_vm_readv(child, &local, 1, &remote, 1, 0);
  }
  EXPECT_LT(got, 0);
  memset(here, 0, sizeof here);
  EXPECT_EQ(os::read_process(child, &local, 1, &remote, 1), 10);
  EXPECT_STREQ(here, "over there");
  memcpy(here, "from here!", 10);
  EXPECT_EQ(os::write_process(child, &local, 1, &remote, 1), 10);
  memset(here, 0, sizeof here);
  EXPECT_EQ(os::read_process(child, &local, 1, &remote, 1), 10);
  EXPECT_STREQ(here, "from here!");
  EXPECT_NE(os::process_start(child), 0u);
  kill(child, SIGKILL);
  // A zombie as a whole, until it is reaped.
  siginfo_t ended;
  waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  EXPECT_EQ(os::process_start(child), 0u);
  EXPECT_EQ(os::read_process(child, &local, 1, &remote, 1), -ESRCH);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(os::read_process(child, &local, 1, &remote, 1), -ESRCH);
}

// ---- descriptors ----

TEST(Event, IsReadableFromSignalToClear) {
  const int fd = os::event_fd();
  ASSERT_GE(fd, 0);
  const auto readable = [fd] {
    pollfd entry = {fd, POLLIN, 0};
    return poll(&entry, 1, 0) == 1;
  };
  EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_FALSE(readable());
  os::event_clear(fd);  // must not block
  os::event_signal(fd);
  os::event_signal(fd);
  EXPECT_TRUE(readable());
  os::event_clear(fd);
  EXPECT_FALSE(readable());
  for (int i = 0; i < 10'000; ++i) os::event_signal(fd);  // a full queue must not block
  EXPECT_TRUE(readable());
  os::event_clear(fd);
  EXPECT_FALSE(readable());
  os::close_fd(fd);
}

TEST(Abstract, OneHolderAtATime) {
  const std::string name = "haul-test-" + std::to_string(getpid());
  errno = EXDEV;
  const int fd = os::bind_abstract(name.c_str());
  ASSERT_GE(fd, 0);
  EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(os::bind_abstract(name.c_str()), -EADDRINUSE);
  const int other = os::bind_abstract((name + "x").c_str());
  EXPECT_GE(other, 0) << "a longer name is another";
  os::close_fd(other);
  os::close_fd(fd);
  const int again = os::bind_abstract(name.c_str());
  EXPECT_GE(again, 0);
  os::close_fd(again);
  EXPECT_EQ(errno, EXDEV);
}

TEST(Abstract, AKilledHolderLetsGo) {
  const std::string name = "haul-test-killed-" + std::to_string(getpid());
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool bound = os::bind_abstract(name.c_str()) >= 0;
    [[maybe_unused]] const ssize_t put = write(ready[1], bound ? "y" : "n", 1);
    for (;;) pause();
  }
  char answer = '?';
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_EQ(os::bind_abstract(name.c_str()), -EADDRINUSE);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const int fd = os::bind_abstract(name.c_str());
  EXPECT_GE(fd, 0);
  os::close_fd(fd);
  close(ready[0]);
  close(ready[1]);
}

TEST(Abstract, NamesHaveLimits) {
  EXPECT_EQ(os::bind_abstract(""), -EINVAL);
  EXPECT_EQ(os::bind_abstract(std::string(108, 'a').c_str()), -ENAMETOOLONG);
  const int fd =
      os::bind_abstract((std::string(97, 'a') + std::to_string(1000000000 + getpid())).c_str());
  EXPECT_GE(fd, 0) << "107 bytes fit";
  os::close_fd(fd);
}

}  // namespace
}  // namespace haul
