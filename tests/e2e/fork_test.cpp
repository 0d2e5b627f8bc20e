// fork, vfork, posix_spawn and exec with copies in flight: the child works and shares nothing, the
// parent notices nothing. (Children of a bare clone(): clone_test.cpp.)
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>

#include <atomic>
#include <thread>
#include <vector>

#include "load.hpp"
#include "support.hpp"

namespace {

using namespace e2e;

TEST(Fork, PendingTicketsAreDoneInTheChildAndItsOwnCopiesWork) {
  SKIP_UNDER_SANITIZERS();
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
  SKIP_UNDER_SANITIZERS();
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
  SKIP_UNDER_SANITIZERS();
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
  SKIP_UNDER_SANITIZERS();
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
  SKIP_UNDER_SANITIZERS();
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
  SKIP_UNDER_SANITIZERS();
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
  SKIP_UNDER_SANITIZERS();
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

// A chain of children, each with threads of its own, does not run out of anything.
TEST(Fork, AChainOfForkingChildren) {
  SKIP_UNDER_SANITIZERS();
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
