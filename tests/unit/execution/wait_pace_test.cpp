// How long a waiter sleeps while a device works.
#include "execution/wait_pace.hpp"

#include <gtest/gtest.h>

namespace haul {
namespace {

constexpr std::uint64_t us = 1000, ms = 1'000'000;

class NeverEnding {
 public:
  NeverEnding() : tenancy_{&claims_, &state_, &watermarks_, 1, 0} {}
  const Tenancy& operator*() const { return tenancy_; }

 private:
  Claims claims_{};
  State state_{};
  Watermarks watermarks_{};
  Tenancy tenancy_;
};

// What is left is slept away by halves; an estimate that does not change is used once, so that a
// device which has stopped is polled as often as one of which nobody knows the speed.
TEST(WaitPace, SleepsThroughAnEstimateOnce) {
  const NeverEnding tenancy;
  WaitPace pace(no_deadline, WaitPace::Until::polled);
  const std::uint64_t begun = now_ns();
  int sleeps = 0;
  for (int turn = 0; turn < 200; ++turn) {
    const std::uint64_t before = now_ns();
    ASSERT_TRUE(pace.wait(*tenancy, 20 * ms));
    if (now_ns() - before > 100 * us) ++sleeps;
  }
  EXPECT_GE(now_ns() - begun, 10 * ms - 1 * ms);
  EXPECT_GE(sleeps, 1);
  EXPECT_LT(sleeps, 20);
}

TEST(WaitPace, ADeadlineEndsANap) {
  const NeverEnding tenancy;
  const std::uint64_t begun = now_ns();
  WaitPace pace(begun + 2 * ms, WaitPace::Until::polled);
  while (pace.wait(*tenancy, 10'000 * ms)) ASSERT_LT(now_ns() - begun, 10'000 * ms);
  EXPECT_GE(now_ns() - begun, 2 * ms);
}

}  // namespace
}  // namespace haul
