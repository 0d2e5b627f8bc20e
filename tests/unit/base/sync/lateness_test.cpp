// How long to sleep, where sleeps end late.
#include "base/sync/lateness.hpp"

#include <gtest/gtest.h>

namespace haul {
namespace {

constexpr std::uint64_t us = 1000, ms = 1'000'000;

TEST(Lateness, ShortensANapAndForbidsShortOnes) {
  Lateness late;
  EXPECT_EQ(late.ns(), 60 * us);
  EXPECT_EQ(late.nap_ns(0), 0u);
  EXPECT_EQ(late.nap_ns(240 * us), 0u);
  EXPECT_EQ(late.nap_ns(300 * us), 150 * us - 60 * us);
  EXPECT_EQ(late.nap_ns(4 * ms), 2 * ms - 60 * us);
  EXPECT_LE(late.nap_ns(UINT64_MAX), 10 * ms);
}

TEST(Lateness, FollowsWhatSleepsTakeHereAndNoSingleOne) {
  Lateness late;
  for (int turn = 0; turn < 100; ++turn) late.note(100 * us, 103 * us);
  EXPECT_LT(late.ns(), 4 * us);
  EXPECT_NE(late.nap_ns(20 * us), 0u);
  late.note(100 * us, 900 * ms);
  EXPECT_LE(late.ns(), 130 * us);
  late.note(100 * us, 50 * us);  // woken early: not late
  EXPECT_LE(late.ns(), 130 * us);
}

}  // namespace
}  // namespace haul
