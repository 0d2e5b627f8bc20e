// The table of spaces: handles, generations, pins, and many threads at once.
#include "engine/spaces.hpp"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "base/os/os.hpp"

namespace haul {
namespace {

std::size_t open_descriptors() {
  DIR* directory = opendir("/proc/self/fd");
  std::size_t count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

Space open_own() {
  Expected<Space> opened = open_space(getpid());
  EXPECT_TRUE(static_cast<bool>(opened)) << (opened ? "" : opened.error().sentence);
  return opened ? *opened : self_space;
}

TEST(Spaces, SelfIsAlwaysOpenAndNeverClosed) {
  EXPECT_TRUE(space_open(self_space));
  EXPECT_EQ(close_space(self_space), Code::invalid);
  const SpaceUse use = acquire_space(self_space);
  EXPECT_EQ(use.code, Code::ok);
  EXPECT_FALSE(use.pidfd.valid());
  EXPECT_TRUE(use.own_memory);
  release_space(self_space);
}

TEST(Spaces, HandlesNobodyGaveOutAreClosed) {
  for (const Space space :
       {Space{1}, Space{255}, Space{256}, Space{0xffffffff}, Space{0xffffff00}}) {
    EXPECT_FALSE(space_open(space)) << space;
    EXPECT_EQ(acquire_space(space).code, Code::closed) << space;
    EXPECT_EQ(close_space(space), Code::invalid) << space;
  }
}

TEST(Spaces, WrongProcessesAreNamed) {
  struct {
    pid_t pid;
    Code code;
  } const cases[] = {{0, Code::invalid}, {-1, Code::invalid}, {0x3ffffffe, Code::peer_gone}};
  for (const auto& wrong : cases) {
    Expected<Space> opened = open_space(wrong.pid);
    ASSERT_FALSE(static_cast<bool>(opened)) << wrong.pid;
    EXPECT_EQ(opened.error().code, wrong.code) << opened.error().sentence;
    EXPECT_NE(std::strstr(opened.error().sentence, ";"), nullptr) << "cause; remedy";
  }
}

TEST(Spaces, AThreadIsNoProcess) {
  std::atomic<pid_t> thread_id{0};
  std::atomic<bool> over{false};
  std::thread thread([&] {
    thread_id = os::thread_id();
    while (!over) std::this_thread::yield();
  });
  while (thread_id == 0) std::this_thread::yield();
  Expected<Space> opened = open_space(thread_id);
  over = true;
  thread.join();
  ASSERT_FALSE(static_cast<bool>(opened));
  EXPECT_EQ(opened.error().code, Code::invalid) << opened.error().sentence;
}

TEST(Spaces, OwnMemoryIsKnownAndAChildsIsNot) {
  const Space own = open_own();
  EXPECT_TRUE(acquire_space(own).own_memory);
  release_space(own);
  EXPECT_EQ(close_space(own), Code::ok);

  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  Expected<Space> opened = open_space(child);
  ASSERT_TRUE(static_cast<bool>(opened)) << opened.error().sentence;
  const SpaceUse use = acquire_space(*opened);
  EXPECT_EQ(use.pid, child);
  EXPECT_FALSE(use.own_memory);
  release_space(*opened);
  EXPECT_EQ(close_space(*opened), Code::ok);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(Spaces, ACloseIsFinalAndItsHandleNeverComesBack) {
  const Space first = open_own();
  EXPECT_TRUE(space_open(first));
  EXPECT_EQ(close_space(first), Code::ok);
  EXPECT_EQ(close_space(first), Code::invalid);
  EXPECT_FALSE(space_open(first));
  // Past every index, so that first's is open again.
  for (std::size_t opened = 0; opened < 2 * max_spaces; ++opened) {
    const Space other = open_own();
    ASSERT_NE(other, first);
    ASSERT_EQ(acquire_space(first).code, Code::closed);
    ASSERT_EQ(close_space(first), Code::invalid);
    ASSERT_EQ(close_space(other), Code::ok);
  }
}

TEST(Spaces, TheLastUserClosesTheDescriptor) {
  const std::size_t before = open_descriptors();
  const Space space = open_own();
  const SpaceUse use = acquire_space(space);
  ASSERT_EQ(acquire_space(space).code, Code::ok);
  ASSERT_EQ(close_space(space), Code::ok);
  EXPECT_EQ(acquire_space(space).code, Code::closed) << "no new users";
  EXPECT_FALSE(space_open(space));
  EXPECT_TRUE(os::pidfd_alive(use.pidfd.get())) << "but it is there for the old";
  release_space(space);
  EXPECT_EQ(open_descriptors(), before + 1);
  release_space(space);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Spaces, AFullTableSaysSoAndLeaksNothing) {
  const std::size_t before = open_descriptors();
  std::vector<Space> all;
  for (std::size_t index = 1; index < max_spaces; ++index) all.push_back(open_own());
  Expected<Space> one_more = open_space(getpid());
  ASSERT_FALSE(static_cast<bool>(one_more));
  EXPECT_EQ(one_more.error().code, Code::no_memory);
  for (const Space space : all) EXPECT_EQ(close_space(space), Code::ok);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Spaces, UsersAndClosersAtOnceNeverMeetAClosedDescriptor) {
  const std::size_t before = open_descriptors();
  std::atomic<Space> current{open_own()};
  std::atomic<bool> over{false};
  std::atomic<unsigned> used{0}, wrong{0};
  std::vector<std::thread> users;
  for (int thread = 0; thread < 3; ++thread) {
    users.emplace_back([&] {
      while (!over.load(std::memory_order_relaxed)) {
        const Space space = current.load(std::memory_order_relaxed);
        const SpaceUse use = acquire_space(space);
        if (use.code != Code::ok) continue;
        if (use.pid != getpid() || !os::pidfd_alive(use.pidfd.get())) ++wrong;
        ++used;
        release_space(space);
      }
    });
  }
  for (int round = 0; round < 3000; ++round) {
    const Space next = open_own();
    const Space old = current.exchange(next);
    ASSERT_EQ(close_space(old), Code::ok);
  }
  over = true;
  for (std::thread& thread : users) thread.join();
  EXPECT_EQ(close_space(current), Code::ok);
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(used, 0u);
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace haul
