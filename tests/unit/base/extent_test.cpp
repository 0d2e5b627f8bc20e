#include "base/extent.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace haul {
namespace {

constexpr std::uintptr_t user_end = std::uintptr_t{1} << 56;

TEST(Extent, OverflowsOnlyPastTheUserHalf) {
  EXPECT_FALSE(overflows(0, 0));
  EXPECT_FALSE(overflows(4096, 4096));
  EXPECT_FALSE(overflows(user_end - 1, 1));
  EXPECT_TRUE(overflows(user_end - 1, 2));
  EXPECT_TRUE(overflows(user_end, 0));
  EXPECT_TRUE(overflows(4096, SIZE_MAX));
  EXPECT_TRUE(overflows(UINTPTR_MAX, 1));
}

TEST(Extent, OverlapsIfAByteIsShared) {
  EXPECT_TRUE(overlaps(100, 100, 1));
  EXPECT_TRUE(overlaps(100, 109, 10));
  EXPECT_TRUE(overlaps(109, 100, 10));
  EXPECT_FALSE(overlaps(100, 110, 10));
  EXPECT_FALSE(overlaps(110, 100, 10));
  EXPECT_FALSE(overlaps(100, 100, 0));
  EXPECT_FALSE(overlaps(0, UINTPTR_MAX, SIZE_MAX));
}

}  // namespace
}  // namespace haul
