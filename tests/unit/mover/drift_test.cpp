// The drift watch tells a line in one's own cache from one that another core keeps writing.
#include "mover/drift.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace haul {
namespace {

TEST(DriftWatch, SaysNothingBeforeItHasSeenEnough) {
  DriftWatch watch;
  std::atomic<bool> line{false};
  for (int i = 0; i < 3; ++i) {
    watch.sample(line);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_FALSE(watch.drifted());
}

TEST(DriftWatch, SamplesAtMostOnceAMillisecond) {
  DriftWatch watch;
  std::atomic<bool> line{false};
  // A hundred thousand samples would be far more than two windows, if they counted.
  for (int i = 0; i < 100000; ++i) watch.sample(line);
  watch.reset();
  EXPECT_FALSE(watch.drifted());
}

}  // namespace
}  // namespace haul
