// A process that stops itself, or is stopped, amid copies, and goes on: nothing is lost, nothing
// waits for ever, and who waits for it notices nothing but time.
#include <gtest/gtest.h>

#include <thread>

#include "e2e/support.hpp"

namespace {

using namespace e2e;

bool is_stopped(pid_t child) {
  int status = 0;
  return waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status);
}

// Stops itself; its parent continues it.
TEST(Stop, OneselfAmidCopies) {
  const pid_t child = start_child([] {
    always_mover();
    const Buffer src(16 * mib), dst(16 * mib);
    src.fill(1);
    haul_wake();
    for (int round = 0; round < 5; ++round) {
      dst.clear();
      const haul_ticket ticket = haul_copy(dst.data(), src.data(), src.size());
      raise(SIGSTOP);
      CHILD_EQUAL(haul_wait(ticket), 0);
      CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
    }
    return 0;
  });
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(is_stopped(child));
    sleep_ms(20);
    kill(child, SIGCONT);
  }
  EXPECT_EQ(end_of(child), 0);
}

// Stopped from outside at any instant, and ended while it is stopped.
TEST(Stop, ByOthersAtAnyInstant) {
  const pid_t child = start_child([] {
    always_mover();
    std::thread([] {
      for (;;) copy_works(mib, 2);
    }).detach();
    for (;;) {
      copy_works(64 * kib, 3);
      haul_wake();
    }
    return 0;
  });
  for (int round = 0; round < 20; ++round) {
    sleep_ms(3 + static_cast<unsigned>(round % 5));
    kill(child, SIGSTOP);
    ASSERT_TRUE(is_stopped(child));
    kill(child, SIGCONT);
  }
  kill(child, SIGSTOP);
  ASSERT_TRUE(is_stopped(child));
  kill(child, SIGTERM);
  kill(child, SIGCONT);
  EXPECT_EQ(end_of(child, 20), 1000 + SIGTERM);
}

// A waiter with a limit of time, stopped for longer than that.
TEST(Stop, ForLongerThanAWaitsLimit) {
  const pid_t child = start_child([] {
    always_mover();
    const Buffer src(16 * mib), dst(16 * mib);
    src.fill(4);
    const haul_ticket ticket = haul_copy(dst.data(), src.data(), src.size());
    raise(SIGSTOP);
    const int result = haul_wait_for(ticket, 1'000'000);
    CHILD_CHECK(result == 0 || result == HAUL_ETIMEDOUT);
    CHILD_EQUAL(haul_wait(ticket), 0);
    CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
    return 0;
  });
  ASSERT_TRUE(is_stopped(child));
  sleep_ms(50);
  kill(child, SIGCONT);
  EXPECT_EQ(end_of(child), 0);
}

}  // namespace
