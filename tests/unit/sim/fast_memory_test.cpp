// The fast model's bus, memory and engine, with cycles worked out by hand.
#include <gtest/gtest.h>

#include <random>

#include "model/fast/bus.hpp"
#include "model/fast/engine.hpp"
#include "model/fast/memory.hpp"

namespace bcisim {
namespace {

// 003, V: 300 cycles of memory, the last 40 of them on the bus.
TEST(SimBus, OneReadTakesTheMemorysTime) {
  FastBus bus{Parameters{}};
  EXPECT_EQ(bus.read(1000), 1300U);
}

TEST(SimBus, ReadsAtOnceFollowEachOtherOnTheBus) {
  FastBus bus{Parameters{}};
  EXPECT_EQ(bus.read(0), 300U);
  EXPECT_EQ(bus.read(0), 340U);
  EXPECT_EQ(bus.read(0), 380U);
  EXPECT_EQ(bus.read(10), 420U);
  EXPECT_EQ(bus.read(500), 800U);
  EXPECT_EQ(bus.blocks(), 5U);
}

// What comes later in the program but earlier in time takes the bus before.
TEST(SimBus, GapsAreFilled) {
  FastBus bus{Parameters{}};
  EXPECT_EQ(bus.read(1000), 1300U);
  EXPECT_EQ(bus.read(0), 300U);
  EXPECT_EQ(bus.write(1220), 1260U);  // just before the first, whose transfer begins at 1260
  EXPECT_EQ(bus.write(1200), 1340U);  // it is taken from 1220 to 1300
}

// A copy that writes back a page's blocks does not hold up reads: a write that has begun goes on,
// the others make room.
TEST(SimBus, ReadsGoBeforeWritesThatHaveNotBegun) {
  FastBus bus{Parameters{}};
  for (unsigned i = 1; i <= 10; ++i) EXPECT_EQ(bus.write(0), 40U * i);
  EXPECT_EQ(bus.read(0), 320U);  // wants the bus at 260; the write of 240 to 280 has begun
  EXPECT_EQ(bus.read(0), 360U);
  EXPECT_EQ(bus.write(0), 520U);  // behind the ten, of which the last now ends at 480
  EXPECT_EQ(bus.read(220),
            560U);  // wants it at 480: the write from 480 has not begun, and makes room
  EXPECT_EQ(bus.blocks(), 14U);
}

TEST(SimBus, WithoutAFreeMshrAReadWaits) {
  Parameters parameters;
  parameters.mshrs = 2;
  FastBus bus{parameters};
  EXPECT_EQ(bus.read(0), 300U);
  EXPECT_EQ(bus.read(0), 340U);
  EXPECT_EQ(bus.read(0), 600U);  // asked when the first is back
  EXPECT_EQ(bus.read(0), 640U);
  EXPECT_EQ(bus.write(0), 40U);  // needs none
}

TEST(SimBus, ForgettingThePastChangesNothing) {
  std::mt19937_64 random(3);
  Parameters parameters;
  parameters.mshrs = 8;
  FastBus remembers{parameters}, forgets{parameters};
  Cycle now = 0;
  for (int i = 0; i < 5000; ++i) {
    now += random() % 100;
    forgets.forget_before(now);
    const Cycle at = now + random() % 2000;
    if (random() % 3 == 0) {
      ASSERT_EQ(remembers.write(at), forgets.write(at)) << i;
    } else {
      ASSERT_EQ(remembers.read(at), forgets.read(at)) << i;
    }
  }
}

class SimMemory : public testing::Test {
 protected:
  Parameters parameters_;
  FastMemory memory_{parameters_, false};
  Result counts() const {
    Result result;
    memory_.report(result);
    return result;
  }
};

TEST_F(SimMemory, LevelsTakeTheirTimes) {
  EXPECT_EQ(memory_.load(7, 0), 2U + 8 + 300);
  EXPECT_EQ(memory_.load(7, 100), 310U);  // its fill is under way
  EXPECT_EQ(memory_.load(7, 400), 402U);
  EXPECT_EQ(memory_.fetch(7, 500), 510U);  // in the L2, not in the L1 of instructions
  EXPECT_EQ(counts().l2_misses, 1U);
  EXPECT_EQ(counts().l1_misses, 2U);
}

TEST_F(SimMemory, ADirtyBlockComesBackFromTheL2) {
  memory_.store(0, 0);
  // Four more of its L1 set: 128 sets.
  for (std::uint64_t i = 1; i <= 4; ++i) memory_.load(i * 128, 1000 * i);
  EXPECT_EQ(memory_.load(0, 10000), 10010U);
  EXPECT_EQ(counts().bus_blocks, 5U);  // nothing was written to memory
}

TEST_F(SimMemory, AffinitiesOfASource) {
  memory_.load(1, 0);
  EXPECT_EQ(memory_.read_source(1, Affinity::neutral, 1000), 1002U);
  EXPECT_EQ(memory_.read_source(2, Affinity::neutral, 1000), 1310U);
  EXPECT_EQ(memory_.load(2, 2000), 2310U);  // it was not brought in
  EXPECT_EQ(memory_.read_source(3, Affinity::cacheable, 3000), 3310U);
  EXPECT_EQ(memory_.load(3, 4000), 4002U);
  EXPECT_EQ(memory_.read_source(1, Affinity::non_cacheable, 5000), 5002U);
  EXPECT_EQ(memory_.load(1, 6000), 6310U);  // it was taken out
  EXPECT_EQ(counts().copy_l2_misses, 2U);
}

TEST_F(SimMemory, AffinitiesOfADestination) {
  EXPECT_EQ(memory_.write_destination(1, Affinity::cacheable, true, 0), 310U);  // read before
  EXPECT_EQ(memory_.load(1, 400), 402U);
  EXPECT_EQ(memory_.write_destination(2, Affinity::cacheable, false, 1000), 1310U);  // read before
  EXPECT_EQ(memory_.write_destination(3, Affinity::neutral, true, 2000), 2010U);  // in the buffer
  EXPECT_EQ(memory_.load(3, 3000), 3310U);
  EXPECT_EQ(memory_.write_destination(1, Affinity::neutral, true, 4000), 4002U);  // stays
  EXPECT_EQ(memory_.load(1, 5000), 5002U);
  EXPECT_EQ(memory_.write_destination(1, Affinity::non_cacheable, true, 6000), 6002U);
  EXPECT_EQ(memory_.load(1, 7000), 7310U);
}

TEST_F(SimMemory, DevicesTakeBlocksOutOrMakeThemClean) {
  memory_.store(1, 0);
  memory_.device_reads(1, 1, 1000);
  EXPECT_EQ(memory_.load(1, 2000), 2002U);
  const std::uint64_t before = counts().bus_blocks;
  memory_.device_reads(1, 1, 3000);
  EXPECT_EQ(counts().bus_blocks, before);  // clean already
  memory_.device_writes(1, 1);
  EXPECT_EQ(memory_.load(1, 4000), 4310U);
}

// More blocks than are looked for one by one: 4 GiB at once.
TEST_F(SimMemory, DevicesReachFar) {
  constexpr std::uint64_t many = std::uint64_t{1} << 26;
  memory_.store(many / 2, 0);
  memory_.store(many + 1, 0);
  const std::uint64_t before = counts().bus_blocks;
  memory_.device_reads(1, many, 1000);
  EXPECT_EQ(counts().bus_blocks, before + 1);
  memory_.device_writes(1, many);
  EXPECT_EQ(memory_.load(many / 2, 4000), 4310U);
  EXPECT_EQ(memory_.load(many + 1, 5000), 5002U);
}

TEST_F(SimMemory, ACheckpointWarmsTheL2InItsOrder) {
  Checkpoint checkpoint;
  // Nine blocks of one set of 8 ways (2048 sets): the first goes again.
  for (std::uint64_t i = 0; i < 9; ++i) checkpoint.blocks.push_back({i * 2048, false});
  memory_.warm(checkpoint);
  EXPECT_EQ(memory_.load(8 * 2048, 0), 10U);
  EXPECT_EQ(memory_.load(1 * 2048, 0), 10U);
  EXPECT_EQ(memory_.load(0, 0), 310U);
}

TEST(SimPerfectMemory, CopiesHelpAndNeverHarm) {
  Parameters parameters;
  FastMemory memory(parameters, true);
  memory.load(0, 0);
  // Copies push it out of the one cache, not out of the other.
  for (std::uint64_t i = 1; i <= 8; ++i)
    memory.read_source(i * 2048, Affinity::cacheable, 1000 * i);
  EXPECT_EQ(memory.load(0, 20000), 20010U - 8);
  EXPECT_EQ(memory.load(8 * 2048, 21000), 21002U);
}

class SimEngine : public testing::Test {
 protected:
  FastEngine::Times run(const BulkCopy& copy, Cycle at) {
    return engine_.run(copy, at, memory_, tlb_, {});
  }
  static BulkCopy copy_of(std::uint64_t destination, std::uint64_t source, unsigned bytes) {
    BulkCopy copy;
    copy.destination = destination;
    copy.source = source;
    copy.bytes = bytes;
    // Physical addresses are the virtual ones.
    copy.destination_pages = {destination / page_bytes, (destination + bytes - 1) / page_bytes};
    copy.source_pages = {source / page_bytes, (source + bytes - 1) / page_bytes};
    return copy;
  }
  Parameters parameters_;
  FastMemory memory_{parameters_, false};
  Tlb tlb_{parameters_.tlb_entries};
  FastEngine engine_{parameters_, true};
};

// Two pages, each one cycle and a walk of 30; then a block: modulus 1, read 310, and the
// destination's, read likewise.
TEST_F(SimEngine, OneColdBlock) {
  const FastEngine::Times times = run(copy_of(0x20000, 0x10000, 64), 100);
  EXPECT_EQ(times.validated, 100U + 2 * 31);
  EXPECT_EQ(times.done, 162U + 1 + 310 + 310);
}

TEST_F(SimEngine, WarmBlocksFollowEachOtherEachCycle) {
  run(copy_of(0x20000, 0x10000, 4096), 0);
  const FastEngine::Times times = run(copy_of(0x20000, 0x10000, 4096), 1000000);
  EXPECT_EQ(times.validated, 1000002U);
  // The last of 64 starts 63 cycles after the first (5 cycles each, fewer than 16 at once): modulus
  // 1, read 2, write 2.
  EXPECT_EQ(times.done, 1000002U + 63 + 5);
}

TEST_F(SimEngine, ShiftedBlocksTakeTheShift) {
  run(copy_of(0x20008, 0x10000, 64), 0);
  const FastEngine::Times times = run(copy_of(0x20008, 0x10000, 64), 10000);
  // 56 bytes and 8: two destination blocks from one source block. Modulus 1, read 2, shift 1, write
  // 2; the second starts a cycle later and reads what has been read.
  EXPECT_EQ(times.done, 10002U + 6);
}

TEST_F(SimEngine, OneBlockAtATime) {
  parameters_.engine_parallel = 1;
  FastEngine engine(parameters_, true);
  engine.run(copy_of(0x20000, 0x10000, 128), 0, memory_, tlb_, {});
  EXPECT_EQ(engine.run(copy_of(0x20000, 0x10000, 128), 10000, memory_, tlb_, {}).done,
            10002U + 5 + 5);
}

TEST_F(SimEngine, AFillReadsItsDestinationAlone) {
  BulkCopy fill = copy_of(0x20000, 0x10000, 64);
  fill.is_fill = true;
  EXPECT_EQ(run(fill, 0).done, 31U + 1 + 310);
}

TEST_F(SimEngine, LoadsWaitForTheirBlockStoresForBothSides) {
  // Validated after 62 cycles; the second block's bytes come 40 cycles after the first's.
  const FastEngine::Times times = run(copy_of(0x20000, 0x10000, 128), 0);
  EXPECT_EQ(times.done, 62U + 1 + 310 + 40 + 310);
  EXPECT_EQ(engine_.load_may(0x20000, 8, 100), 62U + 1 + 310 + 310);
  EXPECT_EQ(engine_.load_may(0x20040, 8, 100), times.done);
  EXPECT_EQ(engine_.load_may(0x2003c, 8, 100), times.done);  // both blocks
  EXPECT_EQ(engine_.load_may(0x10000, 8, 100), 100U);        // reading the source is free
  EXPECT_EQ(engine_.store_may(0x10000, 8, 100), 62U + 1 + 310 + 310);
  EXPECT_EQ(engine_.store_may(0x20040, 8, 100), times.done);
  EXPECT_EQ(engine_.load_may(0x20080, 8, 100), 100U);  // behind it
  EXPECT_EQ(engine_.load_may(0x1fff8, 8, 100), 100U);  // before it
  EXPECT_EQ(engine_.load_may(0x20000, 8, 5000), 5000U);
}

TEST_F(SimEngine, WithoutBlocksAllWaitForTheEnd) {
  FastEngine engine(parameters_, false);
  const FastEngine::Times times = engine.run(copy_of(0x20000, 0x10000, 128), 0, memory_, tlb_, {});
  EXPECT_EQ(engine.load_may(0x20000, 8, 100), times.done);
  EXPECT_EQ(engine.store_may(0x10000, 1, 100), times.done);
  EXPECT_EQ(engine.load_may(0x10000, 8, 100), 100U);
}

// No byte of a region is free before its copy, wherever it begins and ends.
TEST_F(SimEngine, EveryByteOfEveryAlignmentIsWaitedFor) {
  std::mt19937_64 random(11);
  Cycle at = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto bytes = static_cast<unsigned>(1 + random() % (i % 2 != 0 ? 4096 : 200));
    const std::uint64_t destination = 0x100000 + random() % 8192,
                        source = 0x200000 + random() % 8192;
    const FastEngine::Times times = run(copy_of(destination, source, bytes), at);
    ASSERT_GT(times.validated, at);
    ASSERT_GT(times.done, times.validated);
    for (unsigned offset = 0; offset < bytes; ++offset) {
      ASSERT_GT(engine_.load_may(destination + offset, 1, at), times.validated)
          << i << " " << offset;
      ASSERT_GT(engine_.store_may(source + offset, 1, at), times.validated) << i << " " << offset;
    }
    ASSERT_EQ(engine_.load_may(destination + bytes, 1, at), at);
    ASSERT_EQ(engine_.load_may(destination - 1, 1, at), at);
    at = times.done;
  }
}

}  // namespace
}  // namespace bcisim
