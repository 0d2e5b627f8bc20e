// Stacks of haul's threads: kept, taken again, never by two.
#include "base/thread/thread_stack.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/os/os.hpp"
#include "base/sanitizer.hpp"

namespace haul::os {
namespace {

struct Sleeper {
  std::atomic<std::uintptr_t> stack{0};  // where it runs
  std::atomic<bool> over{false};
  bool detached = false;
  pthread_t thread{};

  bool start() { return start_thread(&thread, body, this) == 0; }
  std::uintptr_t wait_for_stack() {
    while (stack == 0) sleep_ns(100'000);
    return stack;
  }
  std::uintptr_t end() {
    over = true;
    join_thread(thread);
    return stack;
  }
  static void* body(void* argument) {
    auto* self = static_cast<Sleeper*>(argument);
    if (self->detached) detach_self();
    self->stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    while (!self->over) sleep_ns(100'000);
    return nullptr;
  }
};

class ThreadStacks : public testing::Test {
 protected:
  void SetUp() override {
    if (accesses_are_checked) GTEST_SKIP() << "with a sanitizer, stacks are glibc's";
  }
};

TEST_F(ThreadStacks, OfJoinedThreadsAreTakenAgain) {
  std::uintptr_t first = 0;
  for (int i = 0; i < 100; ++i) {
    Sleeper one;
    ASSERT_TRUE(one.start());
    const std::uintptr_t stack = one.end();
    if (i == 0) first = stack;
    EXPECT_EQ(stack, first);
  }
}

// More threads than there are stacks in the table: all run, on stacks of their own.
TEST_F(ThreadStacks, OfLivingThreadsAreNot) {
  std::vector<Sleeper> many(100);
  std::vector<std::uintptr_t> found;
  for (Sleeper& one : many) {
    ASSERT_TRUE(one.start());
    for (const std::uintptr_t other : found)
      EXPECT_GT(std::max(other, one.wait_for_stack()) - std::min(other, one.stack.load()), 65536u);
    found.push_back(one.wait_for_stack());
  }
  for (Sleeper& one : many) one.end();
}

TEST_F(ThreadStacks, OfEndedThreadsThatNobodyJoinedYetAreNot) {
  Sleeper ended, next;
  ended.over = true;
  ASSERT_TRUE(ended.start());
  sleep_ns(20'000'000);  // long enough to end, mostly; the test holds either way
  ASSERT_TRUE(next.start());
  EXPECT_NE(next.end(), ended.end());
}

TEST_F(ThreadStacks, OfDetachedThreadsAreTakenAgainOnceTheyEnded) {
  std::uintptr_t first = 0;
  bool again = false;
  for (int i = 0; i < 1000 && !again; ++i) {
    Sleeper one;
    one.detached = true;
    ASSERT_TRUE(one.start());
    const std::uintptr_t stack = one.wait_for_stack();
    one.over = true;
    again = stack == first;
    first = stack;
    sleep_ns(5'000'000);
  }
  EXPECT_TRUE(again);
}

// The child has none of these threads: their stacks are free, even of those that slept in them.
TEST_F(ThreadStacks, AChildOfForkHasAllOfThem) {
  Sleeper one;
  ASSERT_TRUE(one.start());
  const std::uintptr_t stack = one.wait_for_stack();
  const pid_t child = fork();
  if (child == 0) {
    Sleeper own;
    if (!own.start()) _exit(1);
    _exit(own.end() == stack ? 0 : 2);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  one.end();
}

}  // namespace
}  // namespace haul::os
