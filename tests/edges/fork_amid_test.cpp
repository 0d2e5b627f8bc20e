// A fork that cannot wait for what is in flight: in a signal handler amid a copy of its own thread,
// or beside memory that does not arrive. The parent goes on, the child does its part anew or is
// told that it cannot, and nobody waits for ever. What was completed and not reaped is the
// parent's.
#include <gtest/gtest.h>
#include <link.h>
#include <pthread.h>
#include <sys/time.h>

#include <atomic>
#include <thread>

#include "e2e/load.hpp"
#include "e2e/support.hpp"

namespace {

using namespace e2e;

volatile sig_atomic_t in_child = 0, forks = 0;

void fork_in_handler(int) {
  const int before = errno;
  if (in_child == 0) {
    const pid_t child = fork();
    if (child == 0) {
      in_child = 1;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const itimerval never{};
      setitimer(ITIMER_REAL, &never, nullptr);
    } else if (child > 0) {
      forks = forks + 1;
    }
  }
  errno = before;
}

void begin_forking() {
  struct sigaction action {};
  action.sa_handler = fork_in_handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 2500}, {0, 2500}};
  setitimer(ITIMER_REAL, &often, nullptr);
}

// Every child so far has ended well. `patient`: waits for the rest.
void reap_children(bool patient) {
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, patient ? 0 : WNOHANG);
    if (ended < 0 && errno == EINTR) continue;
    if (ended <= 0) return;
    CHILD_EQUAL(status, 0);
  }
}

constexpr std::uint64_t hang_ns = 30'000'000'000;

// Submits copies from src to dst and has the process forked by a handler meanwhile; in the child
// the ticket gives 0 with `whole` bytes, or HAUL_EIO where `may_fail`.
enum class Waits : int { helps, looks };
template <class Submit, class Whole>
int copies_amid_forks(bool may_fail, Waits waits, Submit submit, Whole whole) {
  begin_forking();
  timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  int turn = 0;
  do {
    const haul_ticket ticket = submit();
    if (++turn % 3 == 0 || waits == Waits::looks) {
      while (haul_test(ticket) == 0 && in_child == 0) {
      }
    }
    const int result = haul_wait_for(ticket, hang_ns);
    if (in_child != 0) {
      if (!may_fail || result != HAUL_EIO) {
        CHILD_EQUAL(result, 0);
        whole();
      }
      copy_works(mib, 3);
      _exit(0);
    }
    CHILD_EQUAL(result, 0);
    whole();
    reap_children(false);
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec - begin.tv_sec < 2);
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  reap_children(true);
  CHILD_CHECK(forks > 10);
  return 0;
}

haul_ticket submit_one(void* dst, const void* src, std::size_t bytes, unsigned flags = 0) {
  haul_request request = haul_request_copy(dst, src, bytes);
  request.flags = HAUL_DEDICATED | flags;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  return ticket;
}

TEST(ForkInASignalHandler, TheChildFinishesItsCopy) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(256 * kib), dst(256 * kib);
              src.fill(1);
              copy_works(mib, 2);
              haul_wake();
              return copies_amid_forks(
                  false, Waits::helps,
                  [&] {
                    dst.clear();
                    return submit_one(dst.data(), src.data(), src.size());
                  },
                  [&] { CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0); });
            }),
            0);
}

TEST(ForkInASignalHandler, TheChildIsToldOfWhatItCannotFinish) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer memory(512 * kib), good(256 * kib);
              good.fill(1);
              copy_works(mib, 2);
              haul_wake();
              return copies_amid_forks(
                  true, Waits::helps,  // sides that overlap, half done
                  [&] {
                    std::memcpy(memory.data(), good.data(), good.size());
                    return submit_one(memory.data() + 4 * kib, memory.data(), good.size());
                  },
                  [&] {
                    CHILD_EQUAL(std::memcmp(memory.data() + 4 * kib, good.data(), good.size()), 0);
                  });
            }),
            0);
}

// The test itself must not be forked while it touches memory that both processes have.
class NoForks {
 public:
  NoForks() {
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, &before_);
  }
  ~NoForks() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// A child that copied there late would disturb what the parent writes next.
TEST(ForkInASignalHandler, SharedMemoryIsTheParents) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(256 * kib);
              src.fill(1);
              auto* const dst = static_cast<unsigned char*>(haul_alloc(src.size()));
              CHILD_CHECK(dst != nullptr);
              copy_works(mib, 2);
              haul_wake();
              unsigned char round = 0;
              return copies_amid_forks(
                  true, Waits::looks,
                  [&] {
                    const NoForks no_forks;
                    if (in_child != 0) _exit(0);  // forked between two copies
                    for (std::size_t at = 0; at < src.size(); at += 512)
                      CHILD_CHECK(round == 0 || dst[at] == round);
                    return submit_one(dst, src.data(), src.size());
                  },
                  [&] {
                    const NoForks no_forks;
                    if (in_child != 0) return;
                    CHILD_EQUAL(std::memcmp(dst, src.data(), src.size()), 0);
                    if (++round == 0) ++round;
                    std::memset(dst, round, src.size());
                  });
            }),
            0);
}

std::atomic<int> callbacks{0};

TEST(ForkBesideCompletions, CallbacksRunInTheParentAlone) {
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(mib), dst(mib);
              src.fill(1);
              haul_ticket tickets[20];
              for (haul_ticket& ticket : tickets) {
                haul_request request = haul_request_copy(dst.data(), src.data(), src.size());
                request.flags = HAUL_COMPLETE;
                request.callback = [](const haul_completion*, void*) { ++callbacks; };
                CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
              }
              const int event = haul_reap_eventfd();
              CHILD_CHECK(event >= 0);
              CHILD_EQUAL(run_child([&] {
                            haul_completion entries[32];
                            CHILD_EQUAL(haul_reap(entries, 32), 0);
                            CHILD_EQUAL(callbacks, 0);
                            for (const haul_ticket ticket : tickets)
                              CHILD_EQUAL(haul_test(ticket), 1);
                            if (thread_sanitizer) return 0;  // no threads in a child of fork
                            // Its own queue has room, and its own entries.
                            for (int round = 0; round < 1100; ++round) {
                              submit_one(dst.data(), src.data(), 4 * kib, HAUL_COMPLETE);
                              haul_drain();
                              CHILD_EQUAL(haul_reap(entries, 32), 1);
                            }
                            return 0;
                          }),
                          0);
              haul_drain();
              haul_completion entries[32];
              CHILD_EQUAL(haul_reap(entries, 32), 20);
              CHILD_EQUAL(callbacks, 20);
              return 0;
            }),
            0);
}

// glibc does not mend the loader's lock in a child of fork: no call of haul's may need it there,
// not even the one that makes the child's threads.
TEST(ForkBesideTheLoader, TheChildMakesItsMover) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              always_mover();
              static std::atomic<bool> held{false}, stop{false};
              std::thread holder([] {
                const auto hold = [](dl_phdr_info*, std::size_t, void*) {
                  held = true;
                  while (!stop) sleep_ms(1);
                  return 1;
                };
                dl_iterate_phdr(hold, nullptr);
              });
              while (!held) sleep_ms(1);
              const int child = run_child(
                  [] {
                    CHILD_CHECK(wake_and_see());
                    copy_works(mib, 1);
                    return 0;
                  },
                  20);
              stop = true;
              holder.join();
              return child;
            }),
            0);
}

void park(int) {
  for (;;) pause();
}

// A crash handler that does not return holds the mover, so that its copy never ends.
TEST(ForkBesideAStuckCopy, IsBounded) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child(
                [] {
                  always_mover();
                  setenv("HAUL_MOVER_PATIENCE_MS", "300", 1);
                  signal(SIGSEGV, park);
                  const Buffer src(64 * kib), dst(64 * kib);
                  src.fill(1);
                  copy_works(mib, 1);
                  CHILD_CHECK(wake_and_see());
                  mprotect(dst.data(), dst.size(), PROT_NONE);
                  const haul_ticket stuck = submit_one(dst.data(), src.data(), src.size());
                  sleep_ms(50);
                  const int fine = run_child([&] {
                    mprotect(dst.data(), dst.size(), PROT_READ | PROT_WRITE);
                    CHILD_EQUAL(haul_wait_for(stuck, hang_ns), 0);
                    CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
                    copy_works(mib, 2);
                    std::exit(0);
                    return 0;
                  });
                  CHILD_EQUAL(fine, 0);
                  CHILD_EQUAL(haul_test(stuck), 0);  // in the parent it is as it was
                  copy_works(100, 4);
                  return 0;
                },
                60),
            0);
}

}  // namespace
