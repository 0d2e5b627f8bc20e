// The map of pages against a model: what it gives out never overlaps, is the lowest there is, and
// comes back whole.
#include "memory/page_map.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace haul {
namespace {

using Full = PageMap::Full;

struct PageMapTest : testing::Test {
  ~PageMapTest() override { map.clear(); }
  std::uint64_t take(std::uint64_t pages) {
    Full full = Full::no;
    const std::uint64_t page = map.take(pages, &full);
    EXPECT_EQ(full == Full::no, page != PageMap::no_page);
    return page;
  }
  static constexpr std::uint64_t begin = 1000, end = 5000;
  PageMap map{begin, end};
};

TEST_F(PageMapTest, TakesTheLowestThatFits) {
  EXPECT_EQ(take(3), begin);
  EXPECT_EQ(take(5), begin + 3);
  EXPECT_EQ(take(2), begin + 8);
  EXPECT_TRUE(map.give_back(begin + 3));
  EXPECT_EQ(take(6), begin + 10) << "the gap of 5 is too small";
  EXPECT_EQ(take(4), begin + 3);
  EXPECT_EQ(take(2), begin + 16);
  EXPECT_EQ(take(1), begin + 7);
  EXPECT_EQ(map.used_pages(), 18u);
}

TEST_F(PageMapTest, FreedNeighboursAreOneGapInEveryOrder) {
  const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : orders) {
    std::uint64_t pages[4];
    for (std::uint64_t& page : pages) page = take(10);
    for (const int at : order) EXPECT_TRUE(map.give_back(pages[at]));
    EXPECT_EQ(take(30), begin) << "coalesced";
    EXPECT_TRUE(map.give_back(begin));
    EXPECT_TRUE(map.give_back(pages[3]));
    EXPECT_EQ(map.count(), 0u);
    EXPECT_EQ(take(end - begin), begin) << "all of it is one gap again";
    EXPECT_TRUE(map.give_back(begin));
  }
}

TEST_F(PageMapTest, IsExhaustedAndRecovers) {
  for (std::uint64_t page = begin; page < end; page += 4) EXPECT_EQ(take(4), page);
  Full full = Full::no;
  EXPECT_EQ(map.take(1, &full), PageMap::no_page);
  EXPECT_EQ(full, Full::pages);
  EXPECT_TRUE(map.give_back(end - 4));
  EXPECT_EQ(map.take(5, &full), PageMap::no_page);
  EXPECT_EQ(take(4), end - 4) << "the last pages are pages too";
  for (std::uint64_t page = begin; page < end; page += 8) EXPECT_TRUE(map.give_back(page));
  EXPECT_EQ(map.take(5, &full), PageMap::no_page) << "half is free, in pieces of 4";
  EXPECT_EQ(map.take(end - begin + 1, &full), PageMap::no_page);
  EXPECT_EQ(take(4), begin);
}

TEST_F(PageMapTest, WhatIsLeavingIsUsedUntilItIsGivenBack) {
  const std::uint64_t page = take(8);
  EXPECT_EQ(map.leave(page + 1).pages(), 0u) << "the middle of a range";
  EXPECT_EQ(map.leave(page).pages(), 8u);
  EXPECT_EQ(map.leave(page).pages(), 0u) << "twice";
  EXPECT_EQ(take(1), page + 8);
  EXPECT_TRUE(map[0].leaving);
  EXPECT_FALSE(map[1].leaving);
  map.stay(page);
  EXPECT_EQ(map.leave(page).pages(), 8u) << "it had stayed";
  EXPECT_TRUE(map.give_back(page));
  EXPECT_EQ(take(8), page);
  EXPECT_EQ(map.leave(page).pages(), 8u) << "taken anew";
}

TEST_F(PageMapTest, RefusesWhatItDidNotGiveOut) {
  const std::uint64_t page = take(8);
  EXPECT_FALSE(map.give_back(page + 1)) << "the middle of a range";
  EXPECT_FALSE(map.give_back(page + 8));
  EXPECT_FALSE(map.give_back(0));
  EXPECT_FALSE(map.give_back(PageMap::no_page));
  EXPECT_EQ(map.find(page).pages(), 8u);
  EXPECT_EQ(map.find(page + 1).pages(), 0u);
  EXPECT_TRUE(map.give_back(page));
  EXPECT_FALSE(map.give_back(page)) << "twice";
}

TEST_F(PageMapTest, AddsRangesThatAreFree) {
  EXPECT_TRUE(map.add({2000, 2010}));
  EXPECT_FALSE(map.add({2009, 2011}));
  EXPECT_FALSE(map.add({1990, 2001}));
  EXPECT_FALSE(map.add({2003, 2004}));
  EXPECT_FALSE(map.add({begin - 1, begin + 1}));
  EXPECT_FALSE(map.add({end - 1, end + 1}));
  EXPECT_FALSE(map.add({1500, 1500}));
  EXPECT_TRUE(map.add({1990, 2000}));
  EXPECT_TRUE(map.add({begin, begin + 1}));
  EXPECT_EQ(take(1), begin + 1);
  EXPECT_EQ(map.find(2000).end, 2010u);
}

TEST(PageMapRandom, AgreesWithAModel) {
  constexpr std::uint64_t begin = 77, pages = 200'000;
  PageMap map(begin, begin + pages);
  std::map<std::uint64_t, std::uint64_t> model;  // first page -> pages
  std::vector<std::uint64_t> keys;
  std::mt19937 random(3);
  const auto lowest_gap = [&](std::uint64_t wanted) {
    std::uint64_t page = begin;
    for (const auto& [first, length] : model) {
      if (first - page >= wanted) break;
      page = first + length;
    }
    return begin + pages - page >= wanted ? page : PageMap::no_page;
  };
  unsigned refused = 0;
  for (int step = 0; step < 40'000; ++step) {
    // Waves: it fills up, beyond the table's first room, and empties.
    const bool grow = keys.empty() || random() % 100 < (step / 10'000 % 2 == 0 ? 85u : 20u);
    if (grow) {
      const std::uint64_t wanted = 1 + random() % (random() % 16 == 0 ? 900 : 8);
      Full full = Full::no;
      const std::uint64_t page = map.take(wanted, &full);
      ASSERT_EQ(page, lowest_gap(wanted)) << "step " << step;
      if (page == PageMap::no_page) {
        ++refused;
      } else {
        model[page] = wanted;
        keys.push_back(page);
      }
    } else {
      std::swap(keys[random() % keys.size()], keys.back());
      const std::uint64_t page = keys.back();
      keys.pop_back();
      ASSERT_EQ(map.find(page).pages(), model[page]);
      ASSERT_TRUE(map.give_back(page));
      ASSERT_FALSE(map.give_back(page));
      model.erase(page);
    }
    if (step % 500 == 0) {
      ASSERT_EQ(map.count(), model.size());
      std::size_t at = 0;
      for (const auto& [first, length] : model) {
        ASSERT_EQ(map[at].begin, first);
        ASSERT_EQ(map[at++].pages(), length);
      }
    }
  }
  EXPECT_GT(refused, 0u);
  map.clear();
  EXPECT_EQ(map.count(), 0u);
}

}  // namespace
}  // namespace haul
