// A ring's room, its slots' reuse, its segments; and the walk over a vector's two sides.
#include "request/ring.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "request/request.hpp"

namespace haul {
namespace {

class RingTest : public testing::Test {
 protected:
  void SetUp() override {
    memory_ =
        mmap(nullptr, sizeof(Ring), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory_, MAP_FAILED);
    ring().begin(3, 77);
  }
  void TearDown() override { munmap(memory_, sizeof(Ring)); }
  Ring& ring() { return *static_cast<Ring*>(memory_); }
  std::uint64_t publish() {
    Job job;
    job.chunks = Chunks::single(8, 12);
    EXPECT_TRUE(ring().has_room());
    ring().publish(job, nullptr);
    return job.seq;
  }
  void* memory_ = nullptr;
};

TEST_F(RingTest, HoldsAsManyAsItHasSlots) {
  for (std::uint64_t n = 0; n < Ring::slots; ++n) EXPECT_EQ(publish(), Ring::first_seq + n);
  EXPECT_FALSE(ring().has_room());
  EXPECT_FALSE(ring().quiet());
}

TEST_F(RingTest, ReusesASlotOnlyOnceItsTenancyHasEnded) {
  for (std::uint64_t n = 0; n < Ring::slots; ++n) publish();
  ring().tenancy(Ring::first_seq + 1).end(Code::ok);
  EXPECT_FALSE(ring().has_room()) << "the second ended, the first did not";
  ring().tenancy(Ring::first_seq).end(Code::ok);
  ASSERT_TRUE(ring().has_room());
  publish();
  publish();
  EXPECT_FALSE(ring().has_room());
}

TEST_F(RingTest, KnowsTheFirstUnfinished) {
  for (int n = 0; n < 5; ++n) publish();
  const std::uint64_t end = ring().next_seq();
  EXPECT_EQ(ring().first_unfinished(end), Ring::first_seq);
  ring().tenancy(Ring::first_seq).end(Code::ok);
  ring().tenancy(Ring::first_seq + 1).end(Code::io);
  ring().tenancy(Ring::first_seq + 3).end(Code::ok);
  EXPECT_EQ(ring().first_unfinished(end), Ring::first_seq + 2);
  ring().tenancy(Ring::first_seq + 2).end(Code::ok);
  ring().tenancy(Ring::first_seq + 4).end(Code::ok);
  EXPECT_TRUE(ring().quiet());
}

TEST_F(RingTest, ParametersArriveWhole) {
  Job sent;
  sent.operation = Operation::fill;
  sent.dst_affinity = Affinity::non_cacheable;
  sent.src_affinity = Affinity::neutral;
  sent.pattern_bytes = 4;
  sent.engine = 5;
  sent.fence = sent.checked = true;
  sent.dst_space = 0xabcdef01;
  sent.src_space = 0x12345678;
  sent.dst = 0x7fff12345678;
  sent.src_or_pattern = 0xfedcba9876543210;
  sent.segment_first = 17;
  sent.segment_count = 2000;
  sent.chunks = Chunks::cut(123456789, 65536, 32768, 14);
  const Extras extras{};
  ASSERT_TRUE(ring().has_room());
  ring().publish(sent, &extras);
  Job got;
  ASSERT_TRUE(ring().read(sent.seq, &got));
  EXPECT_FALSE(ring().read(sent.seq + Ring::slots, &got));
  EXPECT_EQ(got.operation, sent.operation);
  EXPECT_EQ(got.dst_affinity, sent.dst_affinity);
  EXPECT_EQ(got.src_affinity, sent.src_affinity);
  EXPECT_EQ(got.pattern_bytes, sent.pattern_bytes);
  EXPECT_EQ(got.engine, sent.engine);
  EXPECT_TRUE(got.fence && got.checked && got.extras);
  EXPECT_EQ(got.dst_space, sent.dst_space);
  EXPECT_EQ(got.src_space, sent.src_space);
  EXPECT_EQ(got.dst, sent.dst);
  EXPECT_EQ(got.src_or_pattern, sent.src_or_pattern);
  EXPECT_EQ(got.segment_first, sent.segment_first);
  EXPECT_EQ(got.segment_count, sent.segment_count);
  EXPECT_EQ(got.chunks.count(), sent.chunks.count());
  for (unsigned i = 0; i <= sent.chunks.count(); ++i)
    EXPECT_EQ(got.chunks.begin(i), sent.chunks.begin(i));
}

TEST_F(RingTest, SegmentsAreGivenBackWithTheirRequest) {
  const std::int64_t first = ring().reserve_segments(Ring::segment_slots);
  ASSERT_EQ(first, 0);
  const std::uint64_t seq = publish();
  EXPECT_EQ(ring().reserve_segments(1), -1);
  ring().tenancy(seq).end(Code::ok);
  EXPECT_EQ(ring().reserve_segments(1), 0);
  publish();
}

TEST_F(RingTest, ACancelledReservationIsGivenBack) {
  for (int n = 0; n < 10; ++n) {
    ASSERT_EQ(ring().reserve_segments(Ring::segment_slots), 0);
    ring().cancel_segments();
  }
  ASSERT_EQ(ring().reserve_segments(1500), 0);
  publish();
  ring().tenancy(Ring::first_seq).end(Code::ok);
  ASSERT_EQ(ring().reserve_segments(1000), 0) << "all is free, so it is at the front";
  ring().cancel_segments();
  EXPECT_EQ(ring().reserve_segments(Ring::segment_slots), 0) << "all is free again";
  publish();
}

TEST_F(RingTest, TheLargestVectorFitsWheneverAllIsFree) {
  ASSERT_EQ(ring().reserve_segments(5), 0);
  ring().tenancy(publish()).end(Code::ok);
  EXPECT_EQ(ring().reserve_segments(Ring::segment_slots - 1), 0);
  publish();
}

TEST_F(RingTest, SegmentsNeverOverlapAndAreContiguous) {
  std::uint64_t oldest = Ring::first_seq;
  struct Held {
    std::int64_t first;
    std::uint32_t count;
  };
  std::vector<Held> held;
  for (std::uint32_t n = 0; n < 3000; ++n) {
    const std::uint32_t count = 1 + (n * 37) % 700;
    std::int64_t first = ring().reserve_segments(count);
    while (first < 0 || !ring().has_room()) {
      ASSERT_FALSE(held.empty());
      held.erase(held.begin());
      ring().tenancy(oldest++).end(Code::ok);
      if (first < 0) first = ring().reserve_segments(count);
    }
    ASSERT_LE(first + count, Ring::segment_slots);
    for (const Held& other : held)
      ASSERT_TRUE(first + count <= other.first || other.first + other.count <= first);
    held.push_back(Held{first, count});
    publish();
  }
}

TEST_F(RingTest, AnAdoptedRingStartsCleanAndKeepsCounting) {
  ring().reserve_segments(100);
  const std::uint64_t seq = publish();
  ring().reserve_segments(500);  // half-way when its owner vanished
  ring().completions.reserve();
  ring().tenancy(seq).end(Code::ok);
  ASSERT_TRUE(ring().quiet());
  ring().adopt();
  EXPECT_EQ(ring().completions.outstanding(), 0u);
  EXPECT_EQ(ring().reserve_segments(Ring::segment_slots), 0);
  ring().cancel_segments();
  for (std::uint64_t n = 0; n < 2 * Ring::slots; ++n) {
    ASSERT_TRUE(ring().has_room());
    const std::uint64_t next = publish();
    ASSERT_EQ(next, seq + 1 + n);
    ring().tenancy(next).end(Code::ok);
  }
}

Request vectors(const Extent* dst, std::uint32_t dst_count, const Extent* src,
                std::uint32_t src_count) {
  Request request;
  request.dst = dst;
  request.dst_count = dst_count;
  request.src = src;
  request.src_count = src_count;
  return request;
}

TEST(SegmentWalk, CutsAtTheEdgesOfBothSides) {
  const Extent dst[] = {{0, 1000, 10}, {0, 2000, 0}, {0, 3000, 20}};
  const Extent src[] = {{0, 5000, 4}, {0, 6000, 26}};
  const Request request = vectors(dst, 3, src, 2);
  SegmentWalk walk(request);
  Segment segment;
  std::size_t length = 0;
  const Segment expected[] = {{0, 1000, 5000}, {4, 1004, 6000}, {10, 3000, 6006}};
  const std::size_t lengths[] = {4, 6, 20};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(walk.next(&segment, &length));
    EXPECT_EQ(segment.offset, expected[i].offset);
    EXPECT_EQ(segment.dst, expected[i].dst);
    EXPECT_EQ(segment.src, expected[i].src);
    EXPECT_EQ(length, lengths[i]);
  }
  EXPECT_FALSE(walk.next(&segment, &length));
}

TEST(SegmentWalk, NothingToMoveHasNoSegments) {
  const Extent empty[] = {{0, 1000, 0}, {0, 0, 0}};
  const Request request = vectors(empty, 2, empty, 1);
  SegmentWalk walk(request);
  Segment segment;
  std::size_t length = 0;
  EXPECT_FALSE(walk.next(&segment, &length));
}

TEST(PatternAt, KeepsThePhase) {
  constexpr std::uint64_t pattern = 0x0807060504030201;
  EXPECT_EQ(pattern_at(pattern, 0), pattern);
  EXPECT_EQ(pattern_at(pattern, 8), pattern);
  EXPECT_EQ(pattern_at(pattern, 3), 0x0302010807060504u);
}

}  // namespace
}  // namespace haul
