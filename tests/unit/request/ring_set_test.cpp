// The set of the rings in use.
#include "request/ring_set.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace haul {
namespace {

std::vector<std::uint32_t> members(const RingSet& set, std::uint32_t count) {
  std::vector<std::uint32_t> found;
  set.for_each(count, [&](std::uint32_t index) { found.push_back(index); });
  return found;
}

TEST(RingSet, WalksItsMembersAlone) {
  const auto set = std::make_unique<RingSet>();
  EXPECT_TRUE(members(*set, max_rings).empty());
  for (const std::uint32_t index : {700u, 3u, 64u, max_rings - 1}) set->add(index);
  EXPECT_EQ(members(*set, max_rings), (std::vector<std::uint32_t>{3, 64, 700, max_rings - 1}));
  EXPECT_EQ(members(*set, 64), (std::vector<std::uint32_t>{3}));
  set->remove(64);
  EXPECT_FALSE(set->has(64));
  EXPECT_EQ(members(*set, 701), (std::vector<std::uint32_t>{3, 700}));
}

TEST(RingSet, ItsVersionTellsOfEachChange) {
  const auto set = std::make_unique<RingSet>();
  const std::uint32_t before = set->version();
  set->add(5);
  const std::uint32_t added = set->version();
  EXPECT_NE(added, before);
  set->remove(5);
  EXPECT_NE(set->version(), added);
}

TEST(RingSet, FindsTheLowestThatIsFree) {
  const auto set = std::make_unique<RingSet>();
  EXPECT_EQ(set->lowest_outside(0), RingSet::none);
  EXPECT_EQ(set->lowest_outside(100), 0u);
  for (std::uint32_t index = 0; index < 70; ++index) set->add(index);
  EXPECT_EQ(set->lowest_outside(70), RingSet::none);
  EXPECT_EQ(set->lowest_outside(71), 70u);
  set->remove(66);
  EXPECT_EQ(set->lowest_outside(71), 66u);
}

}  // namespace
}  // namespace haul
