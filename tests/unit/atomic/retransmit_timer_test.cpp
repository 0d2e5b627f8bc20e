// How long a client waits before it asks again.
#include "atomic/client/retransmit_timer.hpp"

#include <gtest/gtest.h>

namespace haul::atomics {
namespace {

TEST(RetransmitTimer, NothingMeasuredIsNeitherHastyNorEndless) {
  const RetransmitTimer patience;
  EXPECT_GE(patience.before_again_ns(0), RetransmitTimer::least_ns);
  EXPECT_LT(patience.before_again_ns(0), RetransmitTimer::most_ns);
  EXPECT_EQ(patience.round_trip_ns(), 0u);
}

TEST(RetransmitTimer, DoublesWithEachTryUpToItsMost) {
  RetransmitTimer patience;
  patience.measured(1'000'000);
  std::uint64_t last = patience.before_again_ns(0);
  // The first measurement: its half is the spread.
  EXPECT_EQ(last, 3'000'000u);
  for (unsigned tries = 1; tries < 100; ++tries) {
    const std::uint64_t now = patience.before_again_ns(tries);
    EXPECT_EQ(now, std::min(RetransmitTimer::most_ns, 2 * last)) << tries;
    last = now;
  }
  EXPECT_EQ(last, RetransmitTimer::most_ns);
}

TEST(RetransmitTimer, IsNeverBelowItsLeast) {
  RetransmitTimer patience;
  for (int i = 0; i < 100; ++i) patience.measured(1000);
  EXPECT_EQ(patience.before_again_ns(0), RetransmitTimer::least_ns);
}

TEST(RetransmitTimer, ComesToAnEvenRoundTripFromEitherSide) {
  for (const std::uint64_t first : {100'000u, 50'000'000u}) {
    RetransmitTimer patience;
    patience.measured(first);
    for (int i = 0; i < 200; ++i) patience.measured(2'000'000);
    EXPECT_NEAR(static_cast<double>(patience.round_trip_ns()), 2e6, 1e3) << first;
    // Even round trips leave little spread, but never none: a sixteenth is no loss yet.
    EXPECT_LT(patience.before_again_ns(0), 2'200'000u) << first;
    EXPECT_GE(patience.before_again_ns(0), 2'120'000u) << first;
  }
}

TEST(RetransmitTimer, UnevenRoundTripsMakeItLonger) {
  RetransmitTimer even, uneven;
  for (int i = 0; i < 200; ++i) {
    even.measured(2'000'000);
    uneven.measured(i % 2 == 0 ? 1'000'000 : 3'000'000);
  }
  EXPECT_GT(uneven.before_again_ns(0), even.before_again_ns(0) + 2'000'000);
  // Above every round trip that was seen.
  EXPECT_GT(uneven.before_again_ns(0), 3'000'000u);
}

}  // namespace
}  // namespace haul::atomics
