// Sections that a fork waits for, and that wait for no fork.
#include "base/thread/unforked.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/machine/clock.hpp"

namespace haul {
namespace {

constexpr std::uint64_t minute_ns = 60'000'000'000;

TEST(Unforked, IsNotEnteredWhileAForkIsUnderWay) {
  EXPECT_TRUE(Unforked());
  begin_fork(now_ns() + minute_ns);
  EXPECT_FALSE(Unforked());
  begin_fork(now_ns() + minute_ns);  // another thread's
  end_fork();
  EXPECT_FALSE(Unforked());
  end_fork();
  EXPECT_TRUE(Unforked());
}

// A handler that forks amid a fork leaves its child with the end of that one.
TEST(Unforked, TheEndOfAForkOfTheParentEndsNothing) {
  begin_fork(0);
  forget_forks();  // as the child does
  end_fork();
  EXPECT_TRUE(Unforked());
  begin_fork(0);
  EXPECT_FALSE(Unforked());
  end_fork();
  EXPECT_TRUE(Unforked());
}

TEST(Unforked, IsWaitedFor) {
  std::atomic<bool> entered{false}, left{false};
  std::thread other([&] {
    const Unforked section;
    entered = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    left = true;
  });
  while (!entered) std::this_thread::yield();
  begin_fork(now_ns() + minute_ns);
  EXPECT_TRUE(left);
  end_fork();
  other.join();
}

TEST(Unforked, IsNotWaitedForForEver) {
  const Unforked section;
  begin_fork(now_ns() + 1'000'000);
  forget_forks();  // as the child does
  EXPECT_TRUE(Unforked());
}

}  // namespace
}  // namespace haul
