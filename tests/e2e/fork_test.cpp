// fork, vfork, posix_spawn, exec and bare clone() with copies in flight: the child works and shares
// nothing, the parent notices nothing.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support.hpp"

namespace {

using namespace e2e;

#define SKIP_UNDER_THREAD_SANITIZER() \
  if (thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer has no threads after a fork of threads"

// Threads that copy and verify all the time, until told to stop.
class Load {
 public:
  explicit Load(unsigned threads) {
    for (unsigned t = 0; t < threads; ++t) threads_.emplace_back([this, t] { run(t); });
    while (rounds_ < 4 * threads) sched_yield();
  }
  ~Load() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  unsigned rounds() const { return rounds_; }

 private:
  void run(unsigned t) {
    const Buffer src(512 * kib), dst(512 * kib);
    src.fill(t + 100);
    while (!stop_) {
      dst.clear();
      haul_ticket tickets[4];
      const std::size_t part = src.size() / 4;
      for (std::size_t i = 0; i < 4; ++i)
        tickets[i] = haul_copy(dst.data() + i * part, src.data() + i * part, part);
      for (std::size_t i = 0; i < 4; ++i) {
        if (t % 2 == 0) {
          while (haul_test(tickets[i]) == 0) sched_yield();
        }
        CHILD_EQUAL(haul_wait(tickets[i]), 0);
      }
      CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
      ++rounds_;
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<unsigned> rounds_{0};
  std::vector<std::thread> threads_;
};

TEST(Fork, PendingTicketsAreDoneInTheChildAndItsOwnCopiesWork) {
  SKIP_UNDER_THREAD_SANITIZER();
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(32 * mib), dst(32 * mib);
              src.fill(1);
              for (int round = 0; round < 10; ++round) {
                dst.clear();
                const haul_ticket ticket = haul_copy(dst.data(), src.data(), src.size());
                CHILD_EQUAL(run_child(
                                [&] {
                                  CHILD_EQUAL(haul_test(ticket), 1);
                                  CHILD_EQUAL(haul_wait(ticket), 0);
                                  CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
                                  copy_works(4 * mib, 2);
                                  // Its own mover starts when it needs one.
                                  CHILD_CHECK(wake_and_see());
                                  const haul_state before = state_now();
                                  copy_works(4 * mib, 3);
                                  CHILD_CHECK(state_now().dedicated > before.dedicated);
                                  std::exit(0);  // with exit handlers
                                  return 0;
                                },
                                20),
                            0);
                CHILD_EQUAL(haul_wait(ticket), 0);
                CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
              }
              return 0;
            }),
            0);
}

TEST(Fork, TheChildsWritesStayItsOwn) {
  SKIP_UNDER_THREAD_SANITIZER();
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(4 * mib), dst(4 * mib);
              src.fill(1);
              dst.clear();
              copy_works(mib, 9);
              const pid_t child = start_child([&] {
                CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), src.size())), 0);
                return 0;
              });
              CHILD_EQUAL(end_of(child), 0);
              for (std::size_t at = 0; at < dst.size(); at += 997) CHILD_EQUAL(dst[at], 0);
              return 0;
            }),
            0);
}

TEST(Fork, StormUnderLoad) {
  SKIP_UNDER_THREAD_SANITIZER();
  EXPECT_EQ(run_child(
                [] {
                  always_mover();
                  Load load(3);
                  for (int round = 0; round < 60; ++round) {
                    CHILD_EQUAL(run_child(
                                    [round] {
                                      copy_works(mib, static_cast<std::uint64_t>(round));
                                      if (round % 3 == 0) {
                                        CHILD_CHECK(haul_wake() == 0);
                                        copy_works(2 * mib, 5);
                                        CHILD_EQUAL(run_child(
                                                        [] {
                                                          copy_works(mib, 4);
                                                          return 0;
                                                        },
                                                        20),
                                                    0);  // a grandchild
                                      }
                                      return 0;
                                    },
                                    20),
                                0);
                  }
                  const unsigned before = load.rounds();
                  while (load.rounds() < before + 3) sched_yield();
                  return 0;
                },
                120),
            0);
}

// Tickets of other threads, handed to the thread that forks: in the child they are done, or done by
// waiting; none hangs.
TEST(Fork, TicketsOfOtherThreadsEndInTheChild) {
  SKIP_UNDER_THREAD_SANITIZER();
  EXPECT_EQ(run_child(
                [] {
                  always_mover();
                  static std::atomic<std::uint64_t> where{0}, tenancy{0}, version{0};
                  std::atomic<bool> stop{false};
                  const Buffer src(128 * kib), dst(128 * kib);
                  src.fill(3);
                  std::thread submitter([&] {
                    while (!stop) {
                      const haul_ticket ticket = haul_copy(dst.data(), src.data(), src.size());
                      version.fetch_add(1);
                      where = ticket.where;
                      tenancy = ticket.tenancy;
                      version.fetch_add(1);
                    }
                    haul_drain();
                  });
                  for (int round = 0; round < 200; ++round) {
                    std::uint64_t before;
                    haul_ticket ticket{};
                    do {
                      before = version;
                      ticket = haul_ticket{where, tenancy};
                    } while (before == 0 || before % 2 != 0 || version != before);
                    const pid_t child = start_child([&] {
                      const int result = haul_wait(ticket);
                      CHILD_EQUAL(result, 0);
                      return 0;
                    });
                    CHILD_EQUAL(end_of(child, 10), 0);
                  }
                  stop = true;
                  submitter.join();
                  return 0;
                },
                120),
            0);
}

TEST(Fork, TwoThreadsForkAtOnce) {
  SKIP_UNDER_THREAD_SANITIZER();
  EXPECT_EQ(run_child(
                [] {
                  always_mover();
                  std::vector<std::thread> threads;
                  for (unsigned t = 0; t < 4; ++t) {
                    threads.emplace_back([t] {
                      for (int round = 0; round < 25; ++round) {
                        copy_works(256 * kib, t);
                        CHILD_EQUAL(run_child(
                                        [t] {
                                          copy_works(256 * kib, t + 10);
                                          return 0;
                                        },
                                        20),
                                    0);
                      }
                    });
                  }
                  for (std::thread& thread : threads) thread.join();
                  return 0;
                },
                120),
            0);
}

TEST(Fork, VforkPosixSpawnAndSystemUnderLoad) {
  SKIP_UNDER_THREAD_SANITIZER();
  EXPECT_EQ(run_child(
                [] {
                  always_mover();
                  Load load(2);
                  for (int round = 0; round < 40; ++round) {
                    const pid_t child = vfork();
                    if (child == 0) {
                      execl("/bin/true", "true", nullptr);
                      _exit(127);
                    }
                    CHILD_EQUAL(end_of(child), 0);
                    pid_t spawned = 0;
                    char name[] = "true";
                    char* arguments[] = {name, nullptr};
                    CHILD_EQUAL(
                        posix_spawn(&spawned, "/bin/true", nullptr, nullptr, arguments, environ),
                        0);
                    CHILD_EQUAL(end_of(spawned), 0);
                    if (round % 10 == 0) CHILD_EQUAL(std::system("exit 3"), 3 << 8);
                  }
                  return 0;
                },
                120),
            0);
}

TEST(Fork, ExecWithCopiesInFlight) {
  SKIP_UNDER_THREAD_SANITIZER();
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(run_child([] {
                always_mover();
                const Buffer src(64 * mib), dst(64 * mib);
                haul_copy(dst.data(), src.data(), src.size());
                execl("/bin/true", "true", nullptr);
                return 1;
              }),
              0);
  }
}

// A child that no fork handler saw.
template <class Body>
int run_bare_clone(Body body) {
  std::fflush(nullptr);
  const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(body());
  }
  return end_of(static_cast<pid_t>(child), 20);
}

TEST(Fork, ABareCloneBeginsAnew) {
  SKIP_UNDER_THREAD_SANITIZER();
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(16 * mib), dst(16 * mib);
              src.fill(1);
              for (int round = 0; round < 20; ++round) {
                dst.clear();
                const haul_ticket ticket = haul_copy(dst.data(), src.data(), src.size());
                CHILD_EQUAL(run_bare_clone([&] {
                              const bool named = ticket.where >> 32 != 0;
                              if (named) {
                                CHILD_EQUAL(haul_test(ticket), HAUL_ESTALE);
                                CHILD_EQUAL(haul_wait(ticket), HAUL_ESTALE);
                              }
                              copy_works(4 * mib, 2);
                              if (named) CHILD_EQUAL(haul_wait(ticket), HAUL_ESTALE);
                              CHILD_EQUAL(run_child(
                                              [] {
                                                copy_works(mib, 4);
                                                return 0;
                                              },
                                              20),
                                          0);
                              haul_completion entry;
                              CHILD_EQUAL(haul_reap(&entry, 1), 0);
                              CHILD_EQUAL(haul_drain(), 0);
                              std::exit(0);
                              return 0;
                            }),
                            0);
                CHILD_EQUAL(haul_wait(ticket), 0);
                CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
              }
              return 0;
            }),
            0);
}

TEST(Fork, ABareCloneThatNeverCopiesExitsInPeace) {
  SKIP_UNDER_THREAD_SANITIZER();
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(16 * mib), dst(16 * mib);
              for (int round = 0; round < 20; ++round) {
                haul_copy(dst.data(), src.data(), src.size());
                CHILD_EQUAL(run_bare_clone([] {
                              std::exit(0);
                              return 0;
                            }),
                            0);
              }
              CHILD_EQUAL(haul_drain(), 0);
              return 0;
            }),
            0);
}

TEST(Fork, BareClonesUnderLoadDoNotHang) {
  SKIP_UNDER_THREAD_SANITIZER();
  EXPECT_EQ(run_child(
                [] {
                  always_mover();
                  setenv("HAUL_MOVER_SPIN_US", "0", 1);  // the mover takes its locks all the time
                  Load load(2);
                  for (int round = 0; round < 150; ++round) {
                    CHILD_EQUAL(run_bare_clone([] {
                                  // No allocation here: the C library's locks were copied as they
                                  // stood.
                                  static unsigned char from[256 * kib], to[256 * kib];
                                  std::memset(from, 7, sizeof from);
                                  for (int i = 0; i < 8; ++i) {
                                    if (haul_wait(haul_copy(to, from, sizeof to)) != 0) return 1;
                                    if (std::memcmp(to, from, sizeof to) != 0) return 2;
                                    std::memset(to, 0, sizeof to);
                                  }
                                  return 0;
                                }),
                                0);
                  }
                  return 0;
                },
                120),
            0);
}

// The parent's failures are not the child's, though its rings and their numbers begin anew.
TEST(Fork, ABareCloneInheritsNoFailures) {
  SKIP_UNDER_THREAD_SANITIZER();
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(4 * kib), dst(4 * kib), hidden(4 * kib);
              mprotect(hidden.data(), hidden.size(), PROT_NONE);
              haul_request request = haul_request_copy(hidden.data(), src.data(), src.size());
              request.flags = HAUL_DEDICATED | HAUL_CHECKED | HAUL_NONBLOCK;
              for (int i = 0; i < 400; ++i) {
                while (haul_submit(&request, 1, nullptr) == HAUL_EAGAIN) sched_yield();
              }
              CHILD_CHECK(haul_drain() == HAUL_EFAULT || true);
              CHILD_EQUAL(run_bare_clone([&] {
                            haul_ticket tickets[300];
                            haul_request good =
                                haul_request_copy(dst.data(), src.data(), src.size());
                            good.flags = HAUL_DEDICATED | HAUL_NONBLOCK;
                            for (haul_ticket& ticket : tickets) {
                              while (haul_submit(&good, 1, &ticket) == HAUL_EAGAIN) sched_yield();
                            }
                            for (int i = 0; i < 600; ++i) {
                              while (haul_submit(&good, 1, nullptr) == HAUL_EAGAIN) sched_yield();
                            }
                            for (const haul_ticket& ticket : tickets)
                              CHILD_EQUAL(haul_wait(ticket), 0);
                            CHILD_EQUAL(state_now().unobserved, 0);
                            return 0;
                          }),
                          0);
              return 0;
            }),
            0);
}

// A chain of children, each with threads of its own, does not run out of anything.
TEST(Fork, AChainOfForkingChildren) {
  SKIP_UNDER_THREAD_SANITIZER();
  struct Chain {
    static int link(int depth) {
      std::vector<std::thread> threads;
      std::atomic<int> ready{0};
      for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&ready] {
          copy_works(64 * kib, 1);
          ++ready;
          while (ready < 9) sched_yield();
        });
      }
      while (ready < 8) sched_yield();
      if (depth == 0) {
        ready = 9;
        for (std::thread& thread : threads) thread.join();
        CHILD_CHECK(wake_and_see());
        const haul_state before = state_now();
        copy_works(4 * mib, 1);
        CHILD_CHECK(state_now().dedicated > before.dedicated);
        return 0;
      }
      const int result = run_child([depth] { return link(depth - 1); }, 60);
      ready = 9;
      for (std::thread& thread : threads) thread.join();
      return result;
    }
  };
  EXPECT_EQ(run_child([] {
              always_mover();
              return Chain::link(24);
            }),
            0);
}

}  // namespace
