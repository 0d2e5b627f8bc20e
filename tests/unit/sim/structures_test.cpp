// The structures that both models share: caches' tags, TLBs with lock bits, the predictor,
// parameters.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>

#include "model/cache.hpp"
#include "model/parameters.hpp"
#include "model/predictor.hpp"
#include "model/tlb.hpp"

namespace bcisim {
namespace {

// Two sets of two ways.
constexpr CacheParameters tiny{256, 2, 1};

TEST(SimCache, TheLeastRecentlyUsedGoes) {
  Cache cache(tiny, 64);
  EXPECT_EQ(cache.insert(0, false, 5).block, Cache::none);
  EXPECT_EQ(cache.insert(2, true, 6).block, Cache::none);
  ASSERT_NE(cache.find(0), nullptr);
  const Cache::Line gone = cache.insert(4, false, 7);
  EXPECT_EQ(gone.block, 2U);
  EXPECT_TRUE(gone.dirty);
  EXPECT_EQ(gone.ready_at, 6U);
  EXPECT_EQ(cache.find(2), nullptr);
  EXPECT_NE(cache.peek(0), nullptr);
  EXPECT_NE(cache.peek(4), nullptr);
}

TEST(SimCache, PeekingIsNoUse) {
  Cache cache(tiny, 64);
  cache.insert(0, false, 0);
  cache.insert(2, false, 0);
  cache.peek(0);
  EXPECT_EQ(cache.insert(4, false, 0).block, 0U);
}

TEST(SimCache, SetsAreApart) {
  Cache cache(tiny, 64);
  for (const std::uint64_t block : {0U, 2U, 1U, 3U})
    EXPECT_EQ(cache.insert(block, false, 0).block, Cache::none);
  EXPECT_EQ(cache.insert(5, false, 0).block, 1U);
}

TEST(SimCache, WhatIsTakenOutLeavesRoom) {
  Cache cache(tiny, 64);
  cache.insert(0, true, 0);
  cache.insert(2, false, 0);
  EXPECT_TRUE(cache.remove(0).dirty);
  EXPECT_EQ(cache.remove(0).block, Cache::none);
  EXPECT_EQ(cache.insert(4, false, 0).block, Cache::none);
  EXPECT_NE(cache.find(2), nullptr);
}

// A list for each set, which does the same slowly.
TEST(SimCache, DoesWhatAListDoes) {
  constexpr CacheParameters parameters{4096, 4, 1};
  constexpr std::size_t sets = 16;
  Cache cache(parameters, 64);
  std::vector<std::list<std::uint64_t>> model(sets);
  std::mt19937_64 random(20261122);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t block = random() % 150;
    auto& set = model[block % sets];
    const auto there = std::find(set.begin(), set.end(), block);
    ASSERT_EQ(cache.find(block) != nullptr, there != set.end()) << i;
    if (there != set.end()) {
      set.erase(there);
      if (random() % 8 == 0) {
        cache.remove(block);
        continue;
      }
    } else {
      const Cache::Line gone = cache.insert(block, false, 0);
      ASSERT_EQ(gone.block, set.size() == 4 ? set.back() : Cache::none) << i;
      if (set.size() == 4) set.pop_back();
    }
    set.push_front(block);
  }
}

std::uint64_t page(std::uint64_t number) {
  return Tlb::page_of(number * page_bytes, number * page_bytes);
}

TEST(SimTlb, RemembersSoManyAndForgetsTheOldest) {
  Tlb tlb(2);
  EXPECT_FALSE(tlb.touch(page(1)));
  EXPECT_FALSE(tlb.touch(page(2)));
  EXPECT_TRUE(tlb.touch(page(1)));
  EXPECT_FALSE(tlb.touch(page(3)));
  EXPECT_TRUE(tlb.touch(page(1)));
  EXPECT_FALSE(tlb.touch(page(2)));
}

TEST(SimTlb, AnotherPhysicalPageIsAnotherTranslation) {
  Tlb tlb(8);
  EXPECT_FALSE(tlb.touch(Tlb::page_of(0x1000, 0x5000)));
  EXPECT_FALSE(tlb.touch(Tlb::page_of(0x1000, 0x6000)));
  EXPECT_TRUE(tlb.touch(Tlb::page_of(0x1fff, 0x5fff)));
}

TEST(SimTlb, DoesWhatAListDoes) {
  constexpr unsigned entries = 64;
  Tlb tlb(entries);
  std::list<std::uint64_t> model;
  std::mt19937_64 random(7);
  for (int i = 0; i < 50000; ++i) {
    const std::uint64_t number = random() % (i % 1000 < 500 ? 60 : 100);
    const auto there = std::find(model.begin(), model.end(), number);
    ASSERT_EQ(tlb.touch(page(number)), there != model.end()) << i;
    if (there != model.end()) model.erase(there);
    model.push_front(number);
    if (model.size() > entries) model.pop_back();
  }
}

// 003, IV: the OS cannot take a page from a copy under way, and it is the last to make room.
TEST(SimTlb, LockedTranslationsStay) {
  Tlb tlb(2);
  tlb.touch(page(1));
  tlb.lock(page(1));
  EXPECT_FALSE(tlb.invalidate(page(1)));
  tlb.touch(page(2));
  tlb.touch(page(3));  // takes the place of 2, though 1 is older
  EXPECT_TRUE(tlb.touch(page(1)));
  EXPECT_EQ(tlb.locked_evictions(), 0U);
  tlb.unlock(page(1));
  EXPECT_TRUE(tlb.invalidate(page(1)));
  EXPECT_FALSE(tlb.touch(page(1)));
}

TEST(SimTlb, LocksAreCounted) {
  Tlb tlb(2);
  tlb.touch(page(1));
  tlb.lock(page(1));
  tlb.lock(page(1));
  tlb.unlock(page(1));
  EXPECT_FALSE(tlb.invalidate(page(1)));
  tlb.unlock(page(1));
  EXPECT_TRUE(tlb.invalidate(page(1)));
}

TEST(SimTlb, WhereAllAreLockedOneGoesAndIsCounted) {
  Tlb tlb(1);
  tlb.touch(page(1));
  tlb.lock(page(1));
  EXPECT_FALSE(tlb.touch(page(2)));
  EXPECT_EQ(tlb.locked_evictions(), 1U);
  EXPECT_TRUE(tlb.invalidate(page(2)));
}

TEST(SimPredictor, CountsToThreeAndBack) {
  Predictor predictor(4);
  EXPECT_FALSE(predictor.predict(0, true));  // weakly not taken at first
  EXPECT_TRUE(predictor.predict(0, true));
  EXPECT_TRUE(predictor.predict(0, true));
  EXPECT_FALSE(predictor.predict(0, false));  // strongly taken: one exception changes nothing
  EXPECT_TRUE(predictor.predict(0, true));
  EXPECT_FALSE(predictor.predict(0, false));
  EXPECT_FALSE(predictor.predict(0, false));
  EXPECT_TRUE(predictor.predict(0, false));
  EXPECT_FALSE(predictor.predict(1, true));  // another counter
  EXPECT_TRUE(predictor.predict(5, true));   // the same again
}

TEST(SimParameters, ThePaperMachineIsRight) {
  EXPECT_EQ(why_wrong(Parameters{}), "");
  EXPECT_EQ(Parameters{}.bus_block_cycles(), 40U);
}

TEST(SimParameters, WhatCannotBeIsSaid) {
  const auto wrong = [](auto change) {
    Parameters parameters;
    change(parameters);
    return why_wrong(parameters);
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(wrong([](auto& p) { p.l2.bytes = 1000000; }),
                  "L2 cache of 1000000 bytes is not a power of two"));
  EXPECT_TRUE(has(wrong([](auto& p) { p.l1i.bytes = 0; }), "not a power of two"));
  EXPECT_TRUE(has(wrong([](auto& p) { p.l1d.ways = 3; }), "ways"));
  EXPECT_TRUE(has(wrong([](auto& p) { p.l1d.ways = 0; }), "ways"));
  EXPECT_TRUE(has(wrong([](auto& p) { p.l1d.ways = 1024; }), "no room"));
  EXPECT_TRUE(has(wrong([](auto& p) { p.mshrs = 0; }), "number of MSHRs is 0"));
  EXPECT_TRUE(has(wrong([](auto& p) { p.width = 0; }), "width is 0"));
  EXPECT_TRUE(has(wrong([](auto& p) { p.rob_entries = 0; }), "ROB"));
  EXPECT_TRUE(has(wrong([](auto& p) { p.lsq_entries = 2; }), "load/store queue"));
  EXPECT_TRUE(has(wrong([](auto& p) { p.tlb_entries = 0; }), "TLB"));
  EXPECT_TRUE(has(wrong([](auto& p) { p.cst_entries = 0; }), "CST"));
  EXPECT_TRUE(has(wrong([](auto& p) { p.engine_parallel = 0; }), "parallelism"));
  EXPECT_TRUE(has(wrong([](auto& p) { p.predictor_entries = 1000; }), "power of two"));
  EXPECT_TRUE(has(wrong([](auto& p) { p.block_bytes = 48; }), "block of 48"));
  EXPECT_TRUE(has(wrong([](auto& p) { p.bus_bytes_per_cycle = 0; }), "bus of 0"));
  EXPECT_TRUE(has(wrong([](auto& p) { p.memory_cycles = 10; }), "memory latency of 10"));
}

}  // namespace
}  // namespace bcisim
