// Children: each has a copy of its own, at the same addresses, as if the memory were private.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "born/support.hpp"

namespace {

using namespace born;

// Two processes that take turns.
struct Turns {
  int to_child[2], to_parent[2];
  Turns() {
    EXPECT_EQ(pipe(to_child), 0);
    EXPECT_EQ(pipe(to_parent), 0);
  }
  ~Turns() {
    for (int end : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) close(end);
  }
  static void pass(const int* pipe) { EXPECT_EQ(write(pipe[1], "x", 1), 1); }
  static bool await(const int* pipe) {
    char one = 0;
    return read(pipe[0], &one, 1) == 1;
  }
};

TEST(BornFork, NeitherSideSeesWhatTheOtherWrites) {
  constexpr std::size_t bytes = 5 * mib + 123;
  auto* const block = static_cast<unsigned char*>(kept(std::malloc(bytes)));
  std::memset(block, 1, bytes);
  Turns turns;
  const pid_t child = transparent::start_child([&] {
    CHILD_CHECK(Turns::await(turns.to_child));
    CHILD_CHECK(all_are(block, bytes, 1));  // the parent has written 2 meanwhile
    std::memset(block, 3, bytes);
    Turns::pass(turns.to_parent);
    CHILD_CHECK(Turns::await(turns.to_child));
    CHILD_CHECK(all_are(block, bytes, 3));
    std::free(block);
  });
  // So that a child that has failed is noticed.
  close(std::exchange(turns.to_parent[1], -1));
  std::memset(block, 2, bytes);
  Turns::pass(turns.to_child);
  ASSERT_TRUE(Turns::await(turns.to_parent));
  EXPECT_TRUE(all_are(block, bytes, 2));
  Turns::pass(turns.to_child);
  EXPECT_EQ(transparent::end_of(child), 0);
  EXPECT_TRUE(all_are(block, bytes, 2));
  EXPECT_TRUE(is_shared(block, bytes)) << "the parent's stays shared";
  std::free(block);
}

TEST(BornFork, AChildAllocatesFreesResizesAndForks) {
  auto* block = static_cast<unsigned char*>(kept(std::malloc(3 * mib)));
  auto* const other = static_cast<unsigned char*>(kept(std::malloc(mib)));
  std::memset(block, 9, 3 * mib);
  std::memset(other, 8, mib);
  EXPECT_EQ(run_child([&] {
              block = static_cast<unsigned char*>(std::realloc(block, 10 * mib));
              CHILD_CHECK(all_are(block, 3 * mib, 9));
              std::memset(block, 10, 10 * mib);
              void* const fresh = kept(std::malloc(4 * mib));
              CHILD_CHECK(fresh != nullptr && fresh != other);
              std::memset(fresh, 11, 4 * mib);
              CHILD_CHECK(run_child([&] {
                            CHILD_CHECK(all_are(block, 10 * mib, 10));
                            CHILD_CHECK(all_are(other, mib, 8));
                            std::memset(other, 12, mib);
                            std::free(other);
                            std::free(fresh);
                          }) == 0);
              CHILD_CHECK(all_are(other, mib, 8));
              std::free(other);
              std::free(fresh);
              std::free(block);
            }),
            0);
  EXPECT_TRUE(all_are(block, 3 * mib, 9));
  EXPECT_TRUE(all_are(other, mib, 8));
  std::free(block);
  std::free(other);
}

TEST(BornFork, PagesThatNobodyTouchedStayUntouched) {
  // Ten GiB, of which three pages are there: a copy of all of it would not fit.
  constexpr std::size_t bytes = std::size_t{10} << 30;
  auto* const block = static_cast<unsigned char*>(kept(std::malloc(bytes)));
  ASSERT_TRUE(is_shared(block, bytes));
  block[0] = block[bytes / 2] = block[bytes - 1] = 4;
  EXPECT_EQ(run_child([&] {
              CHILD_CHECK(block[0] == 4 && block[bytes / 2] == 4 && block[bytes - 1] == 4);
              CHILD_CHECK(block[4096] == 0 && block[bytes / 2 + 8192] == 0);
              block[4096] = 1;
              rusage used{};
              CHILD_CHECK(getrusage(RUSAGE_SELF, &used) == 0);
              CHILD_CHECK(used.ru_maxrss < 1 << 20);  // KiB
            }),
            0);
  EXPECT_EQ(block[4096], 0);
  std::free(block);
}

TEST(BornFork, ForkWithoutHandlersGivesACopyToo) {
  auto* const block = static_cast<unsigned char*>(kept(std::malloc(mib)));
  std::memset(block, 1, mib);
  const pid_t child = _Fork();
  if (child == 0) {
    std::memset(block, 2, mib);
    _exit(all_are(block, mib, 2) ? 0 : 1);
  }
  EXPECT_EQ(transparent::end_of(child), 0);
  EXPECT_TRUE(all_are(block, mib, 1));
  std::free(block);
}

TEST(BornFork, SystemCallsThatForkGiveACopyToo) {
  auto* const block = static_cast<unsigned char*>(kept(std::malloc(mib)));
  std::memset(block, 1, mib);
  for (const bool clone : {false, true}) {
    const long child =
        clone ? syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr) : syscall(SYS_fork);
    if (child == 0) {
      std::memset(block, 2, mib);
      _exit(all_are(block, mib, 2) ? 0 : 1);
    }
    EXPECT_EQ(transparent::end_of(static_cast<pid_t>(child)), 0);
    EXPECT_TRUE(all_are(block, mib, 1));
  }
  std::free(block);
}

TEST(BornFork, AForkThatIsRefusedChangesNothing) {
  auto* const block = static_cast<unsigned char*>(kept(std::malloc(mib)));
  std::memset(block, 1, mib);
  EXPECT_EQ(run_child([&] {
              CHILD_CHECK(setuid(65534) == 0 || geteuid() != 0);
              const rlimit none{0, 0};
              CHILD_CHECK(setrlimit(RLIMIT_NPROC, &none) == 0);
              const pid_t child = fork();
              if (child == 0) _exit(0);
              CHILD_CHECK(child < 0);
              CHILD_CHECK(all_are(block, mib, 1));
              void* const more = kept(std::malloc(mib));  // the lock is free
              CHILD_CHECK(more != nullptr);
              std::free(more);
            }),
            0);
  std::free(block);
}

TEST(BornFork, WithoutADescriptorForAPipeTheChildStillHasACopy) {
  auto* const block = static_cast<unsigned char*>(kept(std::malloc(mib)));
  std::memset(block, 1, mib);
  // A process of its own, which has the arena still: this one forks with no descriptor left.
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<int> opened;
  const rlimit few{64, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  for (int file = open("/dev/null", O_RDONLY); file >= 0; file = open("/dev/null", O_RDONLY))
    opened.push_back(file);
  const int status = run_child([&] {
    CHILD_CHECK(all_are(block, mib, 1));
    std::memset(block, 2, mib);
  });
  for (int file : opened) close(file);
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(all_are(block, mib, 1));
  std::free(block);
}

TEST(BornFork, ThreadsThatAllocateMeanwhileDoNotHangTheChild) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&stop, i] {
      while (!stop.load()) {
        auto* const block =
            static_cast<unsigned char*>(std::malloc(64 * kib * static_cast<std::size_t>(i + 1)));
        block[0] = 1;
        std::free(block);
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(run_child([] {
                void* const block = kept(std::malloc(mib));
                std::memset(block, 1, mib);
                std::free(block);
              }),
              0);
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
