// The drift watch: a lasting change of the times it is given, and nothing less.
#include "mover/cores/drift.hpp"

#include <gtest/gtest.h>

namespace haul {
namespace {

void add(DriftWatch& watch, std::uint32_t ticks, int times) {
  for (int i = 0; i < times; ++i) watch.add(ticks);
}

TEST(DriftWatch, SeesALastingChangeEitherWay) {
  for (const auto& [before, after] : {std::pair{100u, 300u}, std::pair{300u, 100u}}) {
    DriftWatch watch;
    add(watch, before, 7);
    add(watch, after, 7);
    EXPECT_TRUE(watch.drifted()) << before << " to " << after;
  }
}

TEST(DriftWatch, SaysNothingBeforeItHasSeenEnough) {
  DriftWatch watch;
  add(watch, 100, 7);
  add(watch, 300, 6);
  EXPECT_FALSE(watch.drifted());
}

TEST(DriftWatch, IgnoresOutliersAndTrifles) {
  DriftWatch watch;
  add(watch, 100, 7);
  add(watch, 5000, 3);
  add(watch, 100, 4);
  EXPECT_FALSE(watch.drifted()) << "three of seven are no median";
  DriftWatch close;
  add(close, 40, 7);
  add(close, 75, 7);
  EXPECT_FALSE(close.drifted()) << "35 ticks are within a clock's grain";
}

TEST(DriftWatch, AMeasurementBeginsAnew) {
  DriftWatch watch;
  add(watch, 100, 7);
  add(watch, 300, 7);
  watch.reset();
  EXPECT_FALSE(watch.drifted());
  add(watch, 300, 14);
  EXPECT_FALSE(watch.drifted());
}

TEST(DriftWatch, SamplesAtMostOnceAMillisecond) {
  DriftWatch watch;
  std::atomic<bool> line{false};
  add(watch, 1u << 20, 7);
  // Sampled each time, this cached line would long have replaced the seven slow ones.
  for (int i = 0; i < 1000; ++i) watch.sample(line);
  EXPECT_FALSE(watch.drifted());
}

}  // namespace
}  // namespace haul
