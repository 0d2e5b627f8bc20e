// Claims, the done mask, watermarks, ranges and the end of a tenancy.
#include "completion/tenancy.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "base/machine/clock.hpp"

namespace haul {
namespace {

constexpr std::uint64_t slots = 256;

struct Slot {
  Claims claims;
  State state;
  Watermarks watermarks;
  Tenancy tenancy(std::uint64_t seq) {
    return Tenancy{&claims, &state, &watermarks, seq, static_cast<std::uint32_t>(seq / slots)};
  }
};

class TenancyTest : public testing::Test {
 protected:
  TenancyTest() { new (memory_) Slot{}; }
  Slot& slot() { return *reinterpret_cast<Slot*>(memory_); }
  alignas(64) unsigned char memory_[sizeof(Slot)] = {};
};

const Chunks four = Chunks::cut(4 * 65536 - 5, 65536, 65536, 12);
const Chunks one = Chunks::single(100, 12);

TEST_F(TenancyTest, EachChunkIsClaimedOnce) {
  const Tenancy tenancy = slot().tenancy(slots);
  std::set<int> claimed;
  for (int chunk = tenancy.claim(four); chunk >= 0; chunk = tenancy.claim(four))
    EXPECT_TRUE(claimed.insert(chunk).second);
  EXPECT_EQ(claimed.size(), four.count());
  EXPECT_FALSE(tenancy.claimable(four));
}

TEST_F(TenancyTest, WantedChunksComeFirst) {
  const Tenancy tenancy = slot().tenancy(slots);
  tenancy.want(1u << 2);
  EXPECT_EQ(tenancy.claim(four), 2);
  EXPECT_EQ(tenancy.claim(four), 0);
}

TEST_F(TenancyTest, TheWishesOfAnOlderTenancyAreForgotten) {
  slot().tenancy(slots).want(1u << 2);
  EXPECT_EQ(slot().tenancy(2 * slots).claim(four), 0);
}

TEST_F(TenancyTest, ALateHelperCannotClaimForANewTenant) {
  const Tenancy old_tenancy = slot().tenancy(slots);
  const Tenancy new_tenancy = slot().tenancy(2 * slots);
  EXPECT_EQ(new_tenancy.claim(four), 0);
  EXPECT_EQ(old_tenancy.claim(four), -1);
  EXPECT_FALSE(old_tenancy.claimable(four));
}

// A worker whose copy of the parameters tore may believe in more chunks than the ended tenancy had.
TEST_F(TenancyTest, ATornChunkPlanFindsNothingFree) {
  const Tenancy tenancy = slot().tenancy(slots);
  ASSERT_EQ(tenancy.claim(one), 0);
  EXPECT_EQ(tenancy.claim(four), -1);
}

TEST_F(TenancyTest, TheLastFinisherIsTold) {
  const Tenancy tenancy = slot().tenancy(slots);
  for (unsigned chunk = 0; chunk + 1 < four.count(); ++chunk)
    EXPECT_FALSE(tenancy.finish(chunk, false, four).last);
  const Tenancy::Finish finish = tenancy.finish(four.count() - 1, false, four);
  EXPECT_TRUE(finish.last);
  EXPECT_FALSE(finish.failed);
}

TEST_F(TenancyTest, OneFailedChunkFailsTheWhole) {
  const Tenancy tenancy = slot().tenancy(slots);
  tenancy.finish(1, true, four);
  tenancy.finish(0, false, four);
  tenancy.finish(2, false, four);
  EXPECT_TRUE(tenancy.finish(3, false, four).failed);
  // And the failure does not leak into the next tenancy.
  const Tenancy next = slot().tenancy(2 * slots);
  EXPECT_FALSE(next.finish(0, false, one).failed);
}

TEST_F(TenancyTest, RangesFollowWatermarksAndTheDoneMask) {
  const Tenancy tenancy = slot().tenancy(slots);
  std::uint32_t missing = 0;
  EXPECT_FALSE(tenancy.range_visible(four, 0, 1, &missing));
  EXPECT_EQ(missing, 1u);
  slot().watermarks.word[0].store(std::uint64_t{1} << 32 | 2);
  EXPECT_TRUE(tenancy.range_visible(four, 0, 8192, &missing));
  EXPECT_FALSE(tenancy.range_visible(four, 0, 8193, &missing));
  EXPECT_EQ(tenancy.visible_prefix(four), 8192u);
  tenancy.finish(0, false, four);
  EXPECT_TRUE(tenancy.range_visible(four, 0, four.end(0), &missing));
  EXPECT_FALSE(tenancy.range_visible(four, 0, four.end(0) + 1, &missing));
  EXPECT_EQ(missing, 2u);
  EXPECT_TRUE(tenancy.range_visible(four, 77, 77, &missing)) << "an empty range is visible";
}

TEST_F(TenancyTest, AnOlderTenancysWatermarkIsNothing) {
  slot().watermarks.word[0].store(std::uint64_t{1} << 32 | 9);
  std::uint32_t missing = 0;
  EXPECT_FALSE(slot().tenancy(2 * slots).range_visible(four, 0, 1, &missing));
}

TEST_F(TenancyTest, AFailedRequestHasNoVisibleRangesBeyondItsWatermarks) {
  const Tenancy tenancy = slot().tenancy(slots);
  tenancy.finish(0, true, four);
  std::uint32_t missing = 0;
  EXPECT_FALSE(tenancy.range_visible(four, 0, 1, &missing));
}

TEST_F(TenancyTest, TheEndWakesSleepersAndKeepsItsCode) {
  const Tenancy tenancy = slot().tenancy(slots);
  std::atomic<bool> woke{false};
  std::thread sleeper([&] {
    while (State::seq(slot().state.word.load(std::memory_order_acquire)) < slots)
      tenancy.sleep(10'000'000'000);
    woke.store(true);
  });
  while (slot().claims.sleepers.load() == 0) std::this_thread::yield();
  EXPECT_FALSE(woke.load());
  tenancy.end(Code::fault);
  sleeper.join();
  EXPECT_EQ(State::code(slot().state.word.load()), Code::fault);
  EXPECT_EQ(State::seq(slot().state.word.load()), slots);
  EXPECT_EQ(slot().claims.sleepers.load(), 0u);
}

TEST_F(TenancyTest, ASleepEndsWithItsTimeout) {
  const std::uint64_t begin = now_ns();
  slot().tenancy(slots).sleep(2'000'000);
  EXPECT_GE(now_ns() - begin, 500'000u);
}

// Generations are 32 bits; the comparison must survive the wrap.
TEST_F(TenancyTest, GenerationsWrap) {
  const std::uint64_t before_wrap = (std::uint64_t{1} << 32) * slots - slots;
  slot().claims.claim.store(std::uint64_t{0xfffffffe} << 32 | 0xffffffff);
  ASSERT_EQ(slot().tenancy(before_wrap).claim(one), 0);
  EXPECT_EQ(slot().tenancy(before_wrap + slots).claim(one), 0);
  EXPECT_EQ(slot().tenancy(before_wrap).claim(four), -1);
}

TEST_F(TenancyTest, ManyThreadsClaimAndFinishEachChunkOnce) {
  constexpr unsigned threads = 4, tenancies = 2000;
  const Chunks chunks = Chunks::cut(31 * 4096, 4096, 4096, 12);
  std::vector<std::atomic<std::uint64_t>> current(1);
  current[0] = slots;
  std::atomic<unsigned> claims{0}, lasts{0};
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      for (;;) {
        const std::uint64_t seq = current[0].load();
        if (seq == 0) return;
        const Tenancy tenancy = slot().tenancy(seq);
        const int chunk = tenancy.claim(chunks);
        if (chunk < 0) continue;
        ++claims;
        if (tenancy.finish(static_cast<unsigned>(chunk), false, chunks).last) {
          ++lasts;
          tenancy.end(Code::ok);
          current[0].store(seq / slots < tenancies ? seq + slots : 0);
        }
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(claims.load(), tenancies * chunks.count());
  EXPECT_EQ(lasts.load(), tenancies);
}

}  // namespace
}  // namespace haul
