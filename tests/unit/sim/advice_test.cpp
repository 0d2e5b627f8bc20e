// Which pair of affinities is advised where several are as fast.
#include "study/advice.hpp"

#include <gtest/gtest.h>

namespace bcisim::test {
namespace {

RankedAffinities ranked(const char* name, std::uint64_t cycles) {
  return {*affinities_of(name), cycles, 0};
}

TEST(Advice, TheFastestWhereItIsFasterByMoreThanNoise) {
  EXPECT_EQ(name_of(advised_of({ranked("NC_NEU", 996'999), ranked("C_C", 1'000'000)})), "NC_NEU");
}

TEST(Advice, WithinNoiseHaulsDefault) {
  EXPECT_EQ(name_of(advised_of({ranked("NC_NEU", 997'100), ranked("NEU_NEU", 999'500),
                                ranked("C_C", 1'000'000), ranked("NEU_C", 1'000'001)})),
            "C_C");
  EXPECT_EQ(advised_of({ranked("NC_C", 5000), ranked("C_C", 5000)}), haul_default);
}

TEST(Advice, WithinNoiseASideAloneAndNeutralBeforeNonCacheable) {
  EXPECT_EQ(name_of(advised_of({ranked("NEU_NC", 1'000'000), ranked("NEU_C", 1'000'400),
                                ranked("NEU_NEU", 1'000'500), ranked("C_C", 1'100'000)})),
            "NEU_C");
  EXPECT_EQ(name_of(advised_of({ranked("NC_NC", 1'000'000), ranked("NC_NEU", 1'000'400),
                                ranked("C_C", 1'100'000)})),
            "NC_NEU");
}

TEST(Advice, WithinNoiseTheOneThatLeavesMoreAtTheDefault) {
  EXPECT_EQ(name_of(advised_of({ranked("NEU_NEU", 1'000'000), ranked("C_NC", 1'000'400),
                                ranked("C_C", 1'100'000)})),
            "C_NC");
}

TEST(Advice, NoiseIsMeasuredFromTheFastest) {
  // Each is within noise of the next, but the last is not of the first.
  EXPECT_EQ(name_of(advised_of({ranked("NC_NC", 1'000'000), ranked("NC_NEU", 1'002'700),
                                ranked("C_C", 1'005'400)})),
            "NC_NEU");
}

TEST(Advice, OfEquallyPlainOnesTheFaster) {
  EXPECT_EQ(name_of(advised_of({ranked("C_NEU", 1'000'000), ranked("NEU_C", 1'000'100)})), "C_NEU");
  EXPECT_EQ(name_of(advised_of({ranked("NEU_C", 1'000'000), ranked("C_NEU", 1'000'100)})), "NEU_C");
}

TEST(Advice, ShortCopiesAreThoseThatHaulTakesAsTheyCome) {
  ProfiledSite site;
  site.copies = 10;
  site.bytes = 2559;
  EXPECT_TRUE(is_too_short(site));
  site.bytes = 2560;
  EXPECT_FALSE(is_too_short(site));
}

}  // namespace
}  // namespace bcisim::test
