// Children whose copy is made while they go on: what they do before it is there, and how they end.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>

#include "born/support.hpp"

namespace {

using namespace born;

// Large enough for the copier to be at it for a while.
class BornCopier : public testing::Test {
 protected:
  void SetUp() override {
    block = static_cast<unsigned char*>(kept(std::malloc(bytes)));
    ASSERT_TRUE(is_shared(block, bytes));
    std::memset(block, 1, bytes);
    void* const shared =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    written = static_cast<std::atomic<bool>*>(shared);
  }
  void TearDown() override {
    std::free(block);
    munmap(written, 4096);
  }

  // In a child: until its parent has written over the block.
  void await_parent() const {
    while (!written->load()) usleep(500);
  }

  // The child does `body` at once, and then finds what it left as `value` all over, although the
  // parent has written something else as soon as fork() had returned.
  template <class Body>
  void in_child_at_once(Body body, unsigned char value = 1) {
    written->store(false);
    const pid_t child = transparent::start_child([&] {
      body();
      await_parent();
      CHILD_CHECK(all_are(block, bytes, value));
    });
    std::memset(block, 2, bytes);
    written->store(true);
    EXPECT_EQ(transparent::end_of(child), 0);
    EXPECT_TRUE(all_are(block, bytes, 2));
  }

  static constexpr std::size_t bytes = 48 * mib;
  unsigned char* block = nullptr;
  std::atomic<bool>* written = nullptr;
};

TEST_F(BornCopier, AChildThatCallsExecCopiesNothing) {
  long least = LONG_MAX;
  for (int i = 0; i < 5; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/true", "true", nullptr);
      _exit(1);
    }
    int status = 1;
    rusage used{};
    ASSERT_EQ(wait4(child, &status, 0, &used), child);
    EXPECT_EQ(status, 0);
    least = std::min(least, used.ru_maxrss);  // before exec as well; KiB
  }
  EXPECT_LT(least, static_cast<long>(bytes / 2 / kib));
}

TEST_F(BornCopier, AChildThatClosesEverythingHasItsCopy) {
  in_child_at_once([] {
    for (int file = 3; file < 256; ++file) close(file);
  });
  std::memset(block, 1, bytes);
  in_child_at_once([] { syscall(SYS_close_range, 3, ~0u, 0); });
}

// How many descriptors the thread that is not the main one has open; 0: there is none.
std::size_t descriptors_of_the_copier() {
  using std::filesystem::directory_iterator;
  for (const auto& thread : directory_iterator("/proc/self/task")) {
    if (thread.path().filename() == std::to_string(getpid())) continue;
    std::error_code gone;
    const auto first = directory_iterator(thread.path() / "fd", gone);
    return gone ? 0 : static_cast<std::size_t>(std::distance(first, {}));
  }
  return 0;
}

TEST_F(BornCopier, TheCopierHoldsNothingElseOpen) {
  bool seen = false;
  // (A copier that is done before the child has looked shows nothing.)
  for (int i = 0; i < 10 && !seen; ++i) {
    seen = run_child([] {
             std::size_t open = 2;
             while (open > 1) open = descriptors_of_the_copier();
             _exit(open == 1 ? 0 : 2);
           }) == 0;
  }
  EXPECT_TRUE(seen);
}

TEST_F(BornCopier, AChildWritesAtOnce) {
  in_child_at_once([&] { std::memset(block, 3, bytes); }, 3);
}

TEST_F(BornCopier, AChildForksAtOnce) {
  in_child_at_once([&] {
    const pid_t second = transparent::start_child([&] {
      std::memset(block, 4, mib);
      await_parent();
      CHILD_CHECK(all_are(block, mib, 4) && all_are(block + mib, bytes - mib, 1));
    });
    CHILD_CHECK(transparent::end_of(second) == 0);
  });
}

TEST_F(BornCopier, AChildFreesAndResizesAtOnce) {
  unsigned char* const other = static_cast<unsigned char*>(kept(std::malloc(bytes)));
  std::memset(other, 5, bytes);
  in_child_at_once([&] {
    auto* const more = static_cast<unsigned char*>(kept(std::realloc(other, 2 * bytes)));
    CHILD_CHECK(all_are(more, bytes, 5));
    std::free(more);
    std::free(kept(std::malloc(bytes)));
  });
  EXPECT_TRUE(all_are(other, bytes, 5));
  std::free(other);
}

TEST_F(BornCopier, AChildChangesPagesAtOnce) {
  in_child_at_once([&] {
    CHILD_CHECK(mprotect(block, bytes, PROT_READ) == 0);
    CHILD_CHECK(all_are(block, bytes, 1));
  });
  std::memset(block, 1, bytes);
  in_child_at_once(
      [&] {
        CHILD_CHECK(madvise(block, bytes, MADV_DONTNEED) == 0);
        CHILD_CHECK(all_are(block, bytes, 0));
      },
      0);
  std::memset(block, 1, bytes);
  in_child_at_once(
      [&] {
        auto* const moved =
            static_cast<unsigned char*>(mremap(block, bytes, 2 * bytes, MREMAP_MAYMOVE));
        CHILD_CHECK(moved != MAP_FAILED);
        CHILD_CHECK(all_are(moved, bytes, 1) && all_are(moved + bytes, bytes, 0));
      },
      0);
  std::memset(block, 1, bytes);
  in_child_at_once([&] {
    CHILD_CHECK(munmap(block + 40 * mib, mib) == 0);
    CHILD_CHECK(mmap(block + 40 * mib, mib, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == block + 40 * mib);
    std::memset(block + 40 * mib, 1, mib);
  });
}

TEST_F(BornCopier, AChildThatNeedsToBeOfOneThreadIs) {
  in_child_at_once([&] {
    // (A system may refuse it for other reasons.)
    CHILD_CHECK(unshare(CLONE_NEWUSER) == 0 || errno != EINVAL);
  });
}

TEST_F(BornCopier, AChildStopsItselfAtOnce) {
  for (const bool by_raise : {false, true}) {
    const pid_t child = transparent::start_child([&] {
      by_raise ? raise(SIGSTOP) : kill(getpid(), SIGSTOP);
      CHILD_CHECK(all_are(block, bytes, 1));
    });
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
    EXPECT_TRUE(WIFSTOPPED(status));
    std::memset(block, 2, bytes);
    kill(child, SIGCONT);
    EXPECT_EQ(transparent::end_of(child), 0);
    std::memset(block, 1, bytes);
  }
}

TEST_F(BornCopier, AChildThatDiesAtOnceLetsItsParentGoOn) {
  EXPECT_EQ(run_child([] { kill(getpid(), SIGKILL); }), 1000 + SIGKILL);
  EXPECT_EQ(run_child([] { std::abort(); }), 1000 + SIGABRT);
  std::memset(block, 2, bytes);
}

TEST_F(BornCopier, AThreadsForkIsAsGood) {
  std::thread([&] { in_child_at_once([] {}); }).join();
}

TEST_F(BornCopier, ScatteredPagesAndWhatIsBetweenThemAreTheChilds) {
  ASSERT_EQ(madvise(block, bytes, MADV_DONTNEED), 0);
  for (std::size_t at = 0; at < bytes; at += 8192) block[at] = 1;
  const auto is_as_before = [&] {
    for (std::size_t at = 0; at < bytes; at += 4096)
      if (block[at] != (at % 8192 == 0 ? 1 : 0)) return false;
    return true;
  };
  written->store(false);
  const pid_t child = transparent::start_child([&] {
    CHILD_CHECK(is_as_before());
    await_parent();
    CHILD_CHECK(is_as_before());
  });
  std::memset(block, 2, bytes);
  written->store(true);
  EXPECT_EQ(transparent::end_of(child), 0);
}

TEST_F(BornCopier, RightsAreTheChildsToo) {
  unsigned char* const guard = block + 8 * mib;
  ASSERT_EQ(mprotect(guard, 4096, PROT_NONE), 0);
  ASSERT_EQ(mprotect(block + 16 * mib, mib, PROT_READ), 0);
  EXPECT_EQ(run_child([&] {
              const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
              CHILD_CHECK(read(zero, guard, 1) == -1 && errno == EFAULT);
              CHILD_CHECK(read(zero, block + 16 * mib, 1) == -1 && errno == EFAULT);
              CHILD_CHECK(read(zero, block + 17 * mib, 1) == 1);
              CHILD_CHECK(block[16 * mib] == 1);
              CHILD_CHECK(mprotect(guard, 4096, PROT_READ) == 0 && *guard == 1);
            }),
            0);
  ASSERT_EQ(mprotect(block, bytes, PROT_READ | PROT_WRITE), 0);
}

// ---- forks in a signal handler ----

volatile std::sig_atomic_t forks = 0, failures = 0;
bool by_fork = false;

// The child returns from the handler into what was interrupted, and allocates.
void fork_in_handler(int) {
  const int keep = errno;
  const pid_t child = by_fork ? fork() : _Fork();
  if (child == 0) {
    alarm(20);
    signal(SIGALRM, SIG_DFL);
    signal(SIGPROF, SIG_IGN);
    failures = -1;
    return;
  }
  int status = 1;
  if (waitpid(child, &status, 0) != child || status != 0) failures = 1;
  forks = forks + 1;
  errno = keep;
}

// One turn of what handlers interrupt.
void allocate_and_free() {
  auto* const large = static_cast<unsigned char*>(kept(std::malloc(40 * mib)));
  auto* const one = static_cast<unsigned char*>(kept(std::malloc(300 * kib)));
  auto* const other = static_cast<unsigned char*>(kept(std::malloc(100 * kib)));
  *large = *one = *other = 1;
  CHILD_CHECK(one != other && one != large);
  std::free(one);
  std::free(large);
  std::free(other);
}

TEST(BornHandler, MayForkInTheMiddleOfMalloc) {
  for (const bool fork_itself : {false, true}) {
    EXPECT_EQ(run_child(
                  [&] {
                    // A heap of its own, since a child's is not shared.
                    setenv("HAUL_TEST_BORN_HANDLER", fork_itself ? "fork" : "_Fork", 1);
                    execl("/proc/self/exe", "born", "--gtest_filter=BornHandler.InAProcess",
                          "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
                  },
                  60),
              0);
  }
}

TEST(BornHandler, InAProcess) {
  const char* const how = std::getenv("HAUL_TEST_BORN_HANDLER");
  if (how == nullptr) return;  // run by the case before
  by_fork = std::strcmp(how, "fork") == 0;
  struct sigaction action {};
  action.sa_handler = fork_in_handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 1500}, {0, 1500}};
  setitimer(ITIMER_REAL, &often, nullptr);
  while (forks < 1500 && failures == 0) allocate_and_free();
  if (failures < 0) {  // a child
    for (int i = 0; i < 5; ++i) allocate_and_free();
    _exit(0);
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  EXPECT_EQ(failures, 0);
}

}  // namespace
