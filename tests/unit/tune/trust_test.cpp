#include "tune/trust.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace haul::tune {
namespace {

constexpr std::uint64_t made_s = 1'795'452'138, minute_s = 60, hour_s = 3600, day_s = 24 * hour_s;
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

// A quiet machine's.
Measured quiet() {
  Measured measured;
  measured.figures.measured = true;
  measured.figures.round_trip_ns = 140;
  measured.figures.hot_line_ns = 0.52;
  measured.figures.l3_line_ns = 0.99;
  measured.figures.cold_line_ns = 2.41;
  measured.quality = Quality{made_s, 0.99, 0, 0.1};
  return measured;
}

bool says(const char* reason, const char* word) {
  return reason != nullptr && std::string(reason).find(word) != std::string::npos;
}

TEST(Distrust, NotOfAQuietMachine) {
  EXPECT_EQ(distrust(quiet()), nullptr);
}

TEST(Distrust, OfThoseOnceBelieved) {
  Measured measured = quiet();
  measured.figures.hot_line_ns = measured.figures.l3_line_ns = measured.figures.cold_line_ns = 4.79;
  EXPECT_TRUE(says(distrust(measured), "as long as from memory"));
}

TEST(Distrust, OfAThreadThatWaitedForACpu) {
  Measured measured = quiet();
  for (const double share : {0.0, 0.5, 0.79, -1.0, no_number}) {
    measured.quality.ran_share = share;
    EXPECT_TRUE(says(distrust(measured), "busy")) << share;
  }
  measured.quality.ran_share = 0.81;
  EXPECT_EQ(distrust(measured), nullptr);
}

TEST(Distrust, OfAHostThatTakesTheCpus) {
  Measured measured = quiet();
  for (const double share : {0.06, 1.0, no_number}) {
    measured.quality.stolen_share = share;
    EXPECT_TRUE(says(distrust(measured), "host")) << share;
  }
}

TEST(Distrust, OfRepeatsThatDiffer) {
  Measured measured = quiet();
  for (const double spread : {0.6, 50.0, no_number}) {
    measured.quality.spread = spread;
    EXPECT_TRUE(says(distrust(measured), "repeated")) << spread;
  }
}

TEST(Distrust, OfAnOrderThatCannotBe) {
  Measured measured = quiet();
  measured.figures.hot_line_ns = 1.1;  // above the shared cache's 0.99
  EXPECT_TRUE(says(distrust(measured), "nearer"));
  measured = quiet();
  measured.figures.l3_line_ns = 3;
  EXPECT_TRUE(says(distrust(measured), "nearer"));
  measured.figures.l3_line_ns = no_number;
  EXPECT_NE(distrust(measured), nullptr);
}

// A second-level cache that holds all that is taken for the shared one's.
TEST(Distrust, NotOfCachesThatAreAlike) {
  Measured measured = quiet();
  measured.figures.l3_line_ns = 0.51;
  EXPECT_EQ(distrust(measured), nullptr);
  EXPECT_EQ(in_order(measured.figures).l3_line_ns, 0.52);
  EXPECT_EQ(in_order(measured.figures).cold_line_ns, 2.41);
}

TEST(Outdated, NotWhatAgrees) {
  EXPECT_EQ(outdated(quiet(), {made_s, 0, 0}), nullptr);
  EXPECT_EQ(outdated(quiet(), {made_s + 29 * day_s, 140, 0.52}), nullptr);
  EXPECT_EQ(outdated(quiet(), {made_s + 29 * day_s, 400, 1.0}), nullptr) << "within the factors";
  EXPECT_EQ(outdated(quiet(), {made_s + 29 * day_s, 0, 0}), nullptr) << "nothing is seen";
}

TEST(Outdated, ByAge) {
  EXPECT_TRUE(says(outdated(quiet(), {made_s + 31 * day_s, 140, 0.52}), "old"));
  EXPECT_TRUE(says(outdated(quiet(), {made_s - 2 * day_s, 140, 0.52}), "future"));
  EXPECT_EQ(outdated(quiet(), {made_s - hour_s, 140, 0.52}), nullptr) << "clocks differ a little";
}

TEST(Outdated, BySpeedAfterTenMinutes) {
  for (const double line_ns : {0.2, 1.1}) {
    EXPECT_TRUE(says(outdated(quiet(), {made_s + 11 * minute_s, 0, line_ns}), "fast")) << line_ns;
    EXPECT_EQ(outdated(quiet(), {made_s + 9 * minute_s, 0, line_ns}), nullptr) << line_ns;
  }
}

TEST(Outdated, ByDistanceAfterAnHour) {
  for (const double trip_ns : {40.0, 500.0}) {
    EXPECT_TRUE(says(outdated(quiet(), {made_s + 61 * minute_s, trip_ns, 0}), "apart")) << trip_ns;
    EXPECT_EQ(outdated(quiet(), {made_s + 59 * minute_s, trip_ns, 0}), nullptr) << trip_ns;
  }
}

TEST(RepeatAfter, IsBounded) {
  EXPECT_EQ(repeat_after_s(1), 10u);
  EXPECT_EQ(repeat_after_s(2), 20u);
  EXPECT_EQ(repeat_after_s(7), 640u);
  EXPECT_EQ(repeat_after_s(8), 0u);
  EXPECT_EQ(repeat_after_s(4'000'000'000u), 0u);
}

}  // namespace
}  // namespace haul::tune
