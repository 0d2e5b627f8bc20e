// What the end-to-end tests share: a child process with a fresh library, memory with a pattern, and
// ways to take things away. Every test runs the library in children: each begins with no mover, no
// rings and the environment it sets.
#pragma once

#include <haul/haul.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#if defined(__SANITIZE_THREAD__)
// Children end by _exit() whatever haul's threads do; one that has ended and is about to be joined
// is no leak.
extern "C" __attribute__((used)) inline const char* __tsan_default_options() {
  return "report_thread_leaks=0";
}
#endif

namespace e2e {

inline constexpr std::size_t kib = 1024, mib = 1024 * 1024;
inline constexpr int skip_status = 77;

#if defined(__SANITIZE_THREAD__)
inline constexpr bool thread_sanitizer = true;
#else
inline constexpr bool thread_sanitizer = false;
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitizer = true;
#else
inline constexpr bool sanitizer = false;
#endif

inline void check_equal(long long a, long long b, const char* a_text, const char* b_text,
                        const char* file, int line) {
  if (a == b) return;
  std::fprintf(stderr, "%s:%d: child %d: %.200s is %lld, but %.200s is %lld (last error: %s)\n",
               file, line, getpid(), a_text, a, b_text, b, haul_last_error());
  _exit(1);
}

// In a child: the condition holds, or the child ends and its test fails. (GoogleTest's own checks
// stay in the parent.)
#define CHILD_CHECK(condition)                                                              \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      std::fprintf(stderr, "%s:%d: child %d: %.300s is false (last error: %s)\n", __FILE__, \
                   __LINE__, getpid(), #condition, haul_last_error());                      \
      _exit(1);                                                                             \
    }                                                                                       \
  } while (false)

// As above for equality, with both sides shown.
#define CHILD_EQUAL(a, b)                                                                    \
  do {                                                                                       \
    e2e::check_equal(static_cast<long long>(a), static_cast<long long>(b), #a, #b, __FILE__, \
                     __LINE__);                                                              \
  } while (false)

inline void sleep_ms(unsigned ms) {
  timespec time{ms / 1000, static_cast<long>(ms % 1000) * 1'000'000};
  while (nanosleep(&time, &time) != 0 && errno == EINTR) {
  }
}

// Forks a child that runs `body` (an int for its exit status, 0 is good). Its pid. It dies with the
// thread that made it.
template <class Body>
pid_t start_child(Body body) {
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // One that has gone already would send nothing. (0: it is in another namespace of processes.)
    if (const pid_t now = getppid(); now != parent && now != 0) _exit(1);
    _exit(body());
  }
  return child;
}

// How a child ended: its exit status, or 1000 + the signal that ended it. A child that takes longer
// than `seconds` hangs, and is killed: 1000 + SIGKILL. (An alarm of its own would not do: it may
// hang with all signals blocked.)
inline int end_of(pid_t child, unsigned seconds = 60) {
  if (child < 0) return -1;
  if (sanitizer) seconds *= 4;
  timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  int status = 0;
  for (unsigned turn = 0;; ++turn) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) return -1;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (static_cast<unsigned long>(now.tv_sec - begin.tv_sec) > seconds) {
      std::fprintf(stderr, "child %d hangs and is killed\n", child);
      kill(child, SIGKILL);
    }
    usleep(turn < 100 ? 200 : 2000);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

template <class Body>
int run_child(Body body, unsigned seconds = 60) {
  return end_of(start_child(body), seconds);
}

// Calibration in the background would take a core and wake movers; tests of anything else do
// without, and leave no file.
inline void quiet_environment() {
  setenv("HAUL_TUNE_BACKGROUND", "off", 1);
  setenv("HAUL_TUNE_CACHE", "/proc/nonexistent/haul-e2e", 1);
}

// Processes of other tests on this machine must not take the lease away; and a copy goes to the
// mover whatever its size.
inline void always_mover() {
  quiet_environment();
  setenv("HAUL_MOVER_LEASE", "off", 1);
  setenv("HAUL_PLAN_MOVER", "thread", 1);
}

// Page-aligned memory of its own, with inaccessible pages on both sides.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes), whole_((bytes + 4095) / 4096 * 4096 + 8192) {
    void* at = mmap(nullptr, whole_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
      std::perror("mmap");
      _exit(1);
    }
    base_ = static_cast<unsigned char*>(at);
    mprotect(base_, 4096, PROT_NONE);
    mprotect(base_ + whole_ - 4096, 4096, PROT_NONE);
  }
  ~Buffer() { munmap(base_, whole_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  unsigned char* data() const { return base_ + 4096; }
  std::size_t size() const { return bytes_; }
  unsigned char& operator[](std::size_t at) const { return data()[at]; }

  // Bytes that tell their position and `seed`, so that a copy from elsewhere shows.
  void fill(std::uint64_t seed) const {
    for (std::size_t at = 0; at < bytes_; ++at) data()[at] = expected(seed, at);
  }
  void clear() const { std::memset(data(), 0, bytes_); }
  static unsigned char expected(std::uint64_t seed, std::size_t at) {
    std::uint64_t x = (at + seed * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
    return static_cast<unsigned char>(x >> 56 | 1);
  }

 private:
  std::size_t bytes_, whole_;
  unsigned char* base_;
};

// Tests the ticket until its request has ended, well. A thread that waited would help.
inline void ends_without_help(const haul_ticket& ticket) {
  while (haul_test(ticket) == 0) sched_yield();
  CHILD_EQUAL(haul_test(ticket), 1);
}

inline haul_state state_now() {
  haul_state state{};
  state.size = sizeof state;
  CHILD_CHECK(haul_query(&state) == 0);
  return state;
}

// What is known of an engine now.
inline haul_engine_info engine_now(const char* name) {
  haul_engine_info info{};
  info.size = sizeof info;
  for (unsigned index = 0; haul_engine(index, &info) == 0; ++index)
    if (std::strcmp(info.name, name) == 0) return info;
  return info;
}

// In a child, before haul is used: asks for an engine, with one more setting, by copies until it is
// open or has been refused.
inline haul_engine_info open_engine(const char* name, const char* mover, const char* knob,
                                    const char* value) {
  always_mover();
  setenv("HAUL_PLAN_MOVER", mover, 1);
  setenv("HAUL_PLAN_ENGINE", name, 1);
  setenv(knob, value, 1);
  const Buffer from(64 * kib), to(64 * kib);
  haul_engine_info info{};
  for (int turn = 0; turn < 5000; ++turn) {
    from.fill(static_cast<std::uint64_t>(turn));
    const haul_request request = haul_request_copy(to.data(), from.data(), to.size());
    haul_ticket ticket{};
    CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
    CHILD_EQUAL(haul_wait(ticket), 0);
    CHILD_EQUAL(std::memcmp(to.data(), from.data(), to.size()), 0);
    info = engine_now(name);
    // ("Not opened", "being opened"; but not a refusal that says what cannot be opened.)
    if (std::strstr(info.status, "opened") == nullptr ||
        std::strstr(info.status, "cannot") != nullptr)
      break;
    sleep_ms(2);
  }
  return info;
}

// Wakes the mover and sees it awake; for tests that are about copies in flight.
inline bool wake_and_see() {
  for (int turn = 0; turn < 2000; ++turn) {
    if (haul_wake() != 0) return false;
    if (state_now().mover_state == 1) return true;
    sleep_ms(1);
  }
  return false;
}

inline unsigned cpus_allowed() {
  cpu_set_t mask;
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? static_cast<unsigned>(CPU_COUNT(&mask))
                                                       : 1;
}

// From now on these system calls of the calling process fail with `error`.
inline bool refuse_system_calls(std::initializer_list<int> numbers, int error) {
  sock_filter filter[64];
  unsigned short length = 0;
  filter[length++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (const int number : numbers) {
    filter[length++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1);
    filter[length++] = BPF_STMT(
        BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (static_cast<unsigned>(error) & SECCOMP_RET_DATA));
  }
  filter[length++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  sock_fprog program{length, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

// The state of a copy that must simply work: submits, waits, compares.
inline void copy_works(std::size_t bytes, std::uint64_t seed) {
  const Buffer src(bytes), dst(bytes);
  src.fill(seed);
  dst.clear();
  CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), bytes)), 0);
  CHILD_EQUAL(std::memcmp(dst.data(), src.data(), bytes), 0);
}

inline bool unprivileged() {
  return geteuid() != 0;
}

}  // namespace e2e
