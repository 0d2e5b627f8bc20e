#include "base/machine/busy.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "unit/spinners.hpp"

namespace haul {
namespace {

unsigned runnable_in(const std::string& text) {
  const std::string path = testing::TempDir() + "haul-loadavg";
  std::ofstream(path) << text;
  const unsigned found = runnable_threads(path.c_str());
  std::remove(path.c_str());
  return found;
}

TEST(Busy, RunnableThreadsAreTheFourthWord) {
  EXPECT_EQ(runnable_in("0.20 0.18 0.12 3/80 11206\n"), 3u);
  EXPECT_EQ(runnable_in("20.20 110.18 0.12 300/8000 11206\n"), 300u);
}

TEST(Busy, WhatIsNoLoadIsNotKnown) {
  EXPECT_EQ(runnable_in(""), 0u);
  EXPECT_EQ(runnable_in("0.20 0.18\n"), 0u);
  EXPECT_EQ(runnable_in("0.20 0.18 0.12 3\n"), 0u);
  EXPECT_EQ(runnable_in("0.20 0.18 0.12 x/80 1\n"), 0u);
  EXPECT_EQ(runnable_threads("/proc/nonexistent"), 0u);
}

TEST(Busy, MoreThanTwoThreadsForEachCpuAreSeen) {
  const Spinners spinners;
  EXPECT_TRUE(cpus_are_crowded());
}

}  // namespace
}  // namespace haul
