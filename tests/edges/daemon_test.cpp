// Programs that become daemons after they have used haul, or close all and fork, or fork again and
// again in a tree: every child works, and every process ends.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "e2e/load.hpp"
#include "e2e/support.hpp"

namespace {

using namespace e2e;

void start_haul() {
  always_mover();
  copy_works(mib, 1);
  haul_wake();
  copy_works(4 * mib, 2);
  CHILD_EQUAL(haul_free(haul_alloc(mib)), 0);
}

TEST(Daemon, DaemonAfterCopies) {
  SKIP_UNDER_SANITIZERS();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(run_child([&] {
              start_haul();
              // The parent of the daemon ends by _exit(0) within daemon().
              CHILD_EQUAL(daemon(0, 1), 0);
              copy_works(mib, 3);
              haul_wake();
              copy_works(4 * mib, 4);
              CHILD_EQUAL(write(ends[1], "w", 1), 1);
              std::exit(0);
              return 0;
            }),
            0);
  close(ends[1]);
  char word = 0;
  EXPECT_EQ(read(ends[0], &word, 1), 1) << "the daemon did not work";
  // Its end: the last writer of the pipe is gone.
  EXPECT_EQ(read(ends[0], &word, 1), 0);
  close(ends[0]);
}

TEST(Daemon, ByHandWithAllDescriptorsClosed) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              start_haul();
              return run_child([] {
                CHILD_CHECK(setsid() != -1);
                return run_child([] {
                  CHILD_EQUAL(close_range(0, ~0u, 0), 0);
                  copy_works(mib, 3);
                  haul_wake();
                  copy_works(4 * mib, 4);
                  // Nothing of haul's took the numbers of the standard streams.
                  for (int fd = 0; fd < 3; ++fd) {
                    char byte;
                    if (read(fd, &byte, 0) != -1 || errno != EBADF) return 10 + fd;
                  }
                  std::exit(0);
                  return 0;
                });
              });
            }),
            0);
}

TEST(Daemon, ClosesAllThenForks) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              start_haul();
              CHILD_EQUAL(close_range(3, ~0u, 0), 0);
              for (int round = 0; round < 5; ++round) {
                CHILD_EQUAL(run_child(
                                [] {
                                  copy_works(mib, 5);
                                  haul_wake();
                                  copy_works(4 * mib, 6);
                                  std::exit(0);
                                  return 0;
                                },
                                20),
                            0);
                copy_works(mib, 7);
              }
              std::exit(0);
              return 0;
            }),
            0);
}

// 2^5 processes at once, each with copies in flight when it forks.
int tree(int depth) {
  const Buffer src(mib), dst(mib);
  src.fill(static_cast<std::uint64_t>(depth) + 1);
  const haul_ticket ticket = haul_copy(dst.data(), src.data(), src.size());
  pid_t children[2] = {-1, -1};
  if (depth > 0) {
    for (pid_t& child : children) child = start_child([depth] { return tree(depth - 1); });
  }
  CHILD_EQUAL(haul_wait(ticket), 0);
  CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
  if (depth > 0) {
    for (const pid_t child : children) CHILD_EQUAL(end_of(child), 0);
  }
  std::exit(0);
}

TEST(Daemon, ATreeOfForkingChildren) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              always_mover();
              return tree(5);
            }),
            0);
}

}  // namespace
