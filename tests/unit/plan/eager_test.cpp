// The eager limit is pure arithmetic on the calibration's figures.
#include "plan/eager.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

namespace haul::plan {
namespace {

Calibration machine(double round_trip_ns, double line_ns) {
  Calibration figures;
  figures.round_trip_ns = round_trip_ns;
  figures.hot_line_ns = line_ns / 2;
  figures.l3_line_ns = line_ns * 1.5;
  return figures;
}

TEST(EagerBytes, AreWhereAskingCostsAsMuchAsCopyingOnceMore) {
  // 800 ns for two packets; 8192 bytes are 128 lines, 800 ns at 6.25 each, half of what a copy
  // takes.
  EXPECT_EQ(eager_bytes(machine(100, 12.4)), 8192u);
  EXPECT_EQ(eager_bytes(machine(100, 12.6)), 4096u);
  EXPECT_EQ(eager_bytes(machine(1000, 12.4)), 16384u);
}

TEST(EagerBytes, GrowWithTheDistanceAndWithTheSpeedOfCopying) {
  std::size_t last = 0;
  for (double round_trip = 0; round_trip < 5000; round_trip += 50) {
    const std::size_t bytes = eager_bytes(machine(round_trip, 2));
    EXPECT_GE(bytes, last);
    last = bytes;
  }
  for (double line = 0.1; line < 50; line *= 1.3) {
    const std::size_t bytes = eager_bytes(machine(200, line));
    EXPECT_LE(bytes, last);
    last = bytes;
  }
}

TEST(EagerBytes, StayWithinTheirLimitsWhateverTheFigures) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double round_trip : {-1.0, 0.0, 1.0, 400.0, 1e9, 1e300, infinity}) {
    for (const double line : {-1.0, 0.0, 1e-300, 1.0, 1e300, infinity}) {
      const std::size_t bytes = eager_bytes(machine(round_trip, line));
      EXPECT_GE(bytes, least_eager_bytes);
      EXPECT_LE(bytes, most_eager_bytes);
      EXPECT_TRUE(std::has_single_bit(bytes));
    }
  }
}

}  // namespace
}  // namespace haul::plan
