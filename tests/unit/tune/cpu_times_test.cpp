#include "tune/cpu_times.hpp"

#include <gtest/gtest.h>

#include "unit/base/temp_dir.hpp"

namespace haul::tune {
namespace {

TEST(CpuTimes, AreReadFromTheFirstLine) {
  const CpuTimes times =
      parse_cpu_times("cpu  10 20 30 40 50 60 70 80 5 6\ncpu0 1 1 1 1 1 1 1 1\n");
  EXPECT_EQ(times.all, 360u);
  EXPECT_EQ(times.stolen, 80u);
}

TEST(CpuTimes, OtherTextsTellNothing) {
  for (const char* text : {"", "cpu", "cpu ", "cpu  1 2 3\n", "cpu0 1 2 3 4 5 6 7 8\n",
                           "cpu  1 2 3 4 5 6 7 x\n", "cpu  -1 2 3 4 5 6 7 8\n"}) {
    EXPECT_EQ(parse_cpu_times(text).all, 0u) << text;
  }
  EXPECT_EQ(read_cpu_times("/proc/nonexistent").all, 0u);
}

TEST(CpuTimes, ThisMachinesAreKnown) {
  EXPECT_GT(read_cpu_times("/proc/stat").all, 0u);
}

TEST(StolenShare, IsOfTheTimeBetween) {
  EXPECT_EQ(stolen_share({1000, 10}, {2000, 260}), 0.25);
  EXPECT_EQ(stolen_share({1000, 10}, {2000, 10}), 0);
  EXPECT_EQ(stolen_share({0, 0}, {2000, 260}), 0) << "not known before";
  EXPECT_EQ(stolen_share({1000, 10}, {0, 0}), 0) << "not known after";
  EXPECT_EQ(stolen_share({1000, 10}, {1000, 20}), 0) << "no time went by";
  EXPECT_EQ(stolen_share({1000, 10}, {1010, 100}), 1) << "counters that disagree";
}

}  // namespace
}  // namespace haul::tune
