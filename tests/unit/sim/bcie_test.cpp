// The engine's registers and tables (paper 003, IV), figure 7's example first.
#include "model/bcie/bcie.hpp"

#include <gtest/gtest.h>

#include <random>

#include "model/bcie/interventions.hpp"

namespace bcisim::test {
namespace {

// Physical pages are not the virtual ones, and neighbours are not neighbours.
std::uint64_t page_behind(std::uint64_t address) {
  return (address / page_bytes * 7 + 1000) % 4096;
}
std::uint64_t physical(std::uint64_t address) {
  return page_behind(address) * page_bytes + address % page_bytes;
}

BulkCopy copy_of(std::uint64_t destination, std::uint64_t source, unsigned bytes) {
  BulkCopy copy;
  copy.destination = destination;
  copy.source = source;
  copy.bytes = bytes;
  copy.destination_pages = {page_behind(destination), page_behind(destination + bytes - 1)};
  copy.source_pages = {page_behind(source), page_behind(source + bytes - 1)};
  return copy;
}

BulkCopy fill_of(std::uint64_t destination, unsigned bytes) {
  BulkCopy copy = copy_of(destination, 0, bytes);
  copy.is_fill = true;
  return copy;
}

void validate_all(Bcie& engine) {
  while (!engine.validation().empty()) engine.validation().validated();
}

// Figure 7: 4 KB from a whole page to 0x3F00. "Dst 1" is copied and its page pair complete; of "Dst
// 2" the first block is.
class Figure7 : public ::testing::Test {
 protected:
  void SetUp() override {
    engine_.program(copy_of(0x3F00, 0x8000, 4096));
    validate_all(engine_);
    const unsigned first = engine_.start_pair();
    for (unsigned block = 0; block < 4; ++block) engine_.copied(first, block);
    second_ = engine_.start_pair();
    engine_.copied(second_, 0);
  }
  Dependence load(std::uint64_t address, unsigned bytes = 8) const {
    return engine_.check(physical(address), bytes, false);
  }
  Dependence store(std::uint64_t address, unsigned bytes = 8) const {
    return engine_.check(physical(address), bytes, true);
  }
  Bcie engine_{3, 64};
  unsigned second_ = 0;
};

TEST_F(Figure7, ItsRegistersHoldWhatIsLeft) {
  EXPECT_EQ(engine_.status().destination().begin, 0x4000u);
  EXPECT_EQ(engine_.status().destination().bytes, 4096u - 256);
  EXPECT_EQ(engine_.status().source().begin, 0x8100u);
  const StatusEntry& entry = engine_.table().entry(second_);
  EXPECT_EQ(entry.pair.destination, 0x4000u);
  EXPECT_EQ(entry.pair.source, 0x8100u);
  EXPECT_EQ(entry.destination_mask.count(), 60u);
  EXPECT_TRUE(entry.destination_mask.test(0));
  EXPECT_FALSE(entry.destination_mask.test(60));
  EXPECT_EQ(entry.source_mask.count(), 60u);
  EXPECT_FALSE(entry.source_mask.test(3));
  EXPECT_TRUE(entry.source_mask.test(4));
  EXPECT_EQ(entry.destination_progress.count(), 1u);
  EXPECT_TRUE(entry.source_progress.test(4));
}

TEST_F(Figure7, AIsNotInTheRegion) {
  EXPECT_EQ(load(0x3EF8), Dependence::outside);
  EXPECT_EQ(load(0x4F00), Dependence::outside);
  EXPECT_EQ(load(0x2000), Dependence::outside);
}
TEST_F(Figure7, BIsInACompletedPagePair) {
  EXPECT_EQ(load(0x3F00), Dependence::outside);
}
TEST_F(Figure7, CIsInACopiedBlock) {
  EXPECT_EQ(load(0x4000), Dependence::copied);
}
TEST_F(Figure7, DIsInABlockThatIsNotCopied) {
  EXPECT_EQ(load(0x4040), Dependence::pending);
  engine_.copied(second_, 1);
  EXPECT_EQ(load(0x4040), Dependence::copied);
}
TEST_F(Figure7, AnAccessOfTwoBlocksNeedsBoth) {
  EXPECT_EQ(load(0x403C), Dependence::pending);
  EXPECT_EQ(load(0x4EFC), Dependence::pending) << "the last four bytes of the region";
  engine_.copied(second_, 1);
  EXPECT_EQ(load(0x403C), Dependence::copied);
}
TEST_F(Figure7, LoadsOfTheSourceAreFree) {
  EXPECT_EQ(load(0x8140), Dependence::outside);
}
TEST_F(Figure7, StoresAreCheckedOnBothSides) {
  EXPECT_EQ(store(0x3F00), Dependence::outside);
  EXPECT_EQ(store(0x8000), Dependence::outside) << "the source of Dst 1";
  EXPECT_EQ(store(0x4000), Dependence::copied);
  EXPECT_EQ(store(0x8100), Dependence::copied) << "the source of the first block of Dst 2";
  EXPECT_EQ(store(0x4040), Dependence::pending);
  EXPECT_EQ(store(0x8140), Dependence::pending);
}
TEST_F(Figure7, TheEngineIsFreeWhenAllIsCopied) {
  for (unsigned block = 1; block < 60; ++block) {
    EXPECT_FALSE(engine_.done());
    engine_.copied(second_, block);
  }
  EXPECT_TRUE(engine_.done());
  EXPECT_EQ(load(0x4040), Dependence::outside);
}

TEST(ValidationRegisters, HoldTheSourceThenTheDestinationPageByPage) {
  ValidationRegisters registers;
  registers.program(copy_of(0x3E00, 0x8F00, 1024));
  struct Expected {
    std::uint64_t address;
    bool is_written;
  };
  for (const Expected& expected :
       {Expected{0x8F00, false}, {0x9000, false}, {0x3E00, true}, {0x4000, true}}) {
    ASSERT_FALSE(registers.empty());
    const ValidationRegisters::Page page = registers.next();
    EXPECT_EQ(page.address, expected.address);
    EXPECT_EQ(page.physical, physical(expected.address));
    EXPECT_EQ(page.is_written, expected.is_written);
    registers.validated();
  }
  EXPECT_TRUE(registers.empty());
}

TEST(ValidationRegisters, AFillHasNoSource) {
  ValidationRegisters registers;
  registers.program(fill_of(0x3000, 4096));
  EXPECT_TRUE(registers.next().is_written);
  registers.validated();
  EXPECT_TRUE(registers.empty());
}

TEST(CopyStatus, IsBumpedByPagePairs) {
  const BulkCopy copy = copy_of(0x3E00, 0x8F00, 1024);
  CopyStatus status;
  status.program(copy);
  for (const Subcopy& pair : subcopies_of(copy)) {
    EXPECT_FALSE(status.done());
    EXPECT_EQ(status.destination().physical(), pair.destination_physical);
    EXPECT_EQ(status.source().physical(), pair.source_physical);
    status.bump(pair);
  }
  EXPECT_TRUE(status.done());
  EXPECT_TRUE(status.source().empty());
}

TEST(CopyStatusTable, HasRoomForItsEntriesAndReusesThem) {
  CopyStatusTable table(2, 64);
  const std::vector<Subcopy> pairs = subcopies_of(copy_of(0x3E00, 0x8F00, 1024));
  ASSERT_EQ(pairs.size(), 3u);
  const unsigned first = table.allocate(pairs[0]);
  const unsigned second = table.allocate(pairs[1]);
  EXPECT_FALSE(table.has_room());
  // The second is complete before the first, and waits for it.
  for (unsigned block = 0; block < 4; ++block) table.copied(second, block);
  EXPECT_TRUE(table.entry(second).complete());
  EXPECT_FALSE(table.oldest_complete());
  EXPECT_FALSE(table.has_room());
  for (unsigned block = 4; block-- > 0;) table.copied(first, block);
  EXPECT_TRUE(table.oldest_complete());
  EXPECT_EQ(table.deallocate_oldest().destination, 0x3E00u);
  EXPECT_EQ(table.deallocate_oldest().destination, 0x3F00u);
  EXPECT_TRUE(table.has_room());
  EXPECT_EQ(table.allocate(pairs[2]), 0u);
}

TEST(CopyStatusTable, ASourceBlockIsDoneWithTheLastBlockThatIsMadeOfIt) {
  CopyStatusTable table(3, 64);
  // Source blocks 1 to 3 of the page make destination blocks 0 and 1.
  const unsigned entry = table.allocate(subcopies_of(copy_of(0x3000, 0x8048, 128))[0]);
  table.copied(entry, 1);
  EXPECT_TRUE(table.entry(entry).source_progress.test(3));
  EXPECT_FALSE(table.entry(entry).source_progress.test(2)) << "block 0 needs it, too";
  table.copied(entry, 0);
  EXPECT_TRUE(table.entry(entry).complete());
}

TEST(Subcopies, AreThreeAtMostAndHaveEveryByteOnce) {
  std::mt19937 random(1);
  std::size_t most = 0;
  for (int i = 0; i < 20000; ++i) {
    const BulkCopy copy = copy_of(0x3000 + random() % 4096, 0x8000 + random() % 4096,
                                  1 + static_cast<unsigned>(random() % 4096));
    const std::vector<Subcopy> pairs = subcopies_of(copy);
    most = std::max(most, pairs.size());
    unsigned done = 0;
    for (const Subcopy& pair : pairs) {
      ASSERT_EQ(pair.destination, copy.destination + done);
      ASSERT_EQ(pair.source, copy.source + done);
      ASSERT_EQ(pair.destination_physical, physical(pair.destination));
      ASSERT_EQ(pair.source_physical, physical(pair.source));
      ASSERT_EQ(pair.destination / page_bytes, (pair.destination + pair.bytes - 1) / page_bytes);
      ASSERT_EQ(pair.source / page_bytes, (pair.source + pair.bytes - 1) / page_bytes);
      done += pair.bytes;
    }
    ASSERT_EQ(done, copy.bytes);
  }
  EXPECT_EQ(most, 3u);
}

// Blocks are copied in any order in which page pairs can be under way; the check must say of each
// access what the bytes say.
void check_against_bytes(unsigned block_bytes, unsigned entries, std::uint32_t seed) {
  std::mt19937 random(seed);
  const bool is_fill = random() % 8 == 0;
  const unsigned bytes = 1 + static_cast<unsigned>(random() % (random() % 2 != 0 ? 4096 : 300));
  const std::uint64_t destination = 0x3000 + random() % 4096, source = 0x8000 + random() % 4096;
  const BulkCopy copy = is_fill ? fill_of(destination, bytes) : copy_of(destination, source, bytes);
  Bcie engine(entries, block_bytes);
  engine.program(copy);
  validate_all(engine);

  struct Move {
    unsigned entry, index;
    Subcopy pair;
  };
  std::vector<Move> under_way;
  std::vector<bool> copied(bytes);  // destination bytes; the source's the other way round
  const auto is_source_free = [&](std::uint64_t offset) {
    // A source block is free when all bytes of it in its page pair are copied.
    const auto same = [&](std::uint64_t a, std::uint64_t b) {
      return (source + a) / block_bytes == (source + b) / block_bytes &&
             (destination + a) / page_bytes == (destination + b) / page_bytes;
    };
    for (std::uint64_t i = offset; same(offset, i); --i) {
      if (!copied[i]) return false;
      if (i == 0) break;
    }
    for (std::uint64_t i = offset; i < bytes && same(offset, i); ++i) {
      if (!copied[i]) return false;
    }
    return true;
  };
  while (!engine.done()) {
    while (engine.can_start_pair()) {
      const unsigned entry = engine.start_pair();
      const Subcopy& pair = engine.table().entry(entry).pair;
      for (unsigned i = 0; i < BlockMoves(pair, block_bytes).count(); ++i) {
        under_way.push_back({entry, i, pair});
      }
    }
    ASSERT_FALSE(under_way.empty());
    std::swap(under_way[random() % under_way.size()], under_way.back());
    const Move move = under_way.back();
    under_way.pop_back();
    const BlockMove what = BlockMoves(move.pair, block_bytes)[move.index];
    const std::uint64_t begin = what.destination * block_bytes + what.offset -
                                move.pair.destination_physical + move.pair.destination -
                                destination;
    for (std::uint64_t i = begin; i < begin + what.bytes; ++i) {
      ASSERT_FALSE(copied[i]) << "twice";
      copied[i] = true;
    }
    engine.copied(move.entry, move.index);

    for (int k = 0; k < 20; ++k) {
      const bool at_source = !is_fill && random() % 2 != 0, is_store = random() % 2 != 0;
      const std::uint64_t region = at_source ? source : destination;
      std::uint64_t address = region + random() % (bytes + 32) - 16;
      const unsigned most = static_cast<unsigned>(page_bytes - address % page_bytes);
      const unsigned count = std::min(most, 1 + static_cast<unsigned>(random() % 16));
      bool pending = false;
      for (std::uint64_t byte = address; byte < address + count; ++byte) {
        if (byte < region || byte >= region + bytes) continue;
        const std::uint64_t offset = byte - region;
        if (!at_source) pending = pending || !copied[offset];
        if (at_source && is_store) pending = pending || !is_source_free(offset);
      }
      ASSERT_EQ(engine.check(physical(address), count, is_store) == Dependence::pending, pending)
          << "seed " << seed << " address " << address;
    }
  }
  for (unsigned i = 0; i < bytes; ++i) ASSERT_TRUE(copied[i]);
}

TEST(Bcie, SaysOfEachAccessWhatTheBytesSay) {
  std::uint32_t seed = 0;
  for (const unsigned block_bytes : {16u, 64u, 256u, 1024u}) {
    for (const unsigned entries : {1u, 2u, 3u}) {
      for (int i = 0; i < 40; ++i) check_against_bytes(block_bytes, entries, seed++);
    }
  }
}

TEST(Bcie, BeforeAPagePairStartsAllOfItIsPending) {
  Bcie engine(1, 64);
  engine.program(copy_of(0x3E00, 0x8F00, 1024));
  EXPECT_EQ(engine.check(physical(0x3E00), 8, false), Dependence::pending);
  validate_all(engine);
  const unsigned first = engine.start_pair();
  EXPECT_FALSE(engine.can_start_pair());
  EXPECT_EQ(engine.check(physical(0x4000), 8, false), Dependence::pending);
  for (unsigned block = 0; block < 4; ++block) engine.copied(first, block);
  EXPECT_TRUE(engine.can_start_pair());
}

class InterventionsTest : public ::testing::Test {
 protected:
  Interventions::Answer request(Interventions& interventions, const Intervention& one) {
    return interventions.request(
        one, [this](const Intervention& other) { return other.physical >= pending_from_; },
        [this](const Intervention& other) { processed_.push_back(other.physical); });
  }
  void release(Interventions& interventions) {
    interventions.release(
        [this](const Intervention& other) { return other.physical >= pending_from_; },
        [this](const Intervention& other) { processed_.push_back(other.physical); });
  }
  std::uint64_t pending_from_ = 0x100;
  std::vector<std::uint64_t> processed_;
};

TEST_F(InterventionsTest, AreBufferedUntilTheirBlockIsCopied) {
  Interventions interventions(Interventions::Policy::buffer);
  EXPECT_EQ(request(interventions, {0x40, 64, true}), Interventions::Answer::processed);
  EXPECT_EQ(request(interventions, {0x100, 64, true}), Interventions::Answer::buffered);
  EXPECT_EQ(request(interventions, {0x140, 64, true}), Interventions::Answer::buffered);
  release(interventions);
  EXPECT_EQ(processed_.size(), 1u);
  pending_from_ = 0x140;
  release(interventions);
  EXPECT_EQ(processed_, (std::vector<std::uint64_t>{0x40, 0x100}));
  pending_from_ = 0x1000;
  release(interventions);
  EXPECT_EQ(processed_.back(), 0x140u);
  EXPECT_TRUE(interventions.empty());
}

TEST_F(InterventionsTest, OfOneAddressStayInOrder) {
  Interventions interventions(Interventions::Policy::buffer);
  request(interventions, {0x100, 64, true});
  pending_from_ = 0x1000;
  EXPECT_EQ(request(interventions, {0x120, 8, false}), Interventions::Answer::buffered);
  release(interventions);
  EXPECT_EQ(processed_, (std::vector<std::uint64_t>{0x100, 0x120}));
}

TEST_F(InterventionsTest, AreRefusedWhereThatIsThePolicy) {
  Interventions interventions(Interventions::Policy::refuse);
  EXPECT_EQ(request(interventions, {0x100, 64, true}), Interventions::Answer::refused);
  EXPECT_TRUE(interventions.empty());
  pending_from_ = 0x140;
  EXPECT_EQ(request(interventions, {0x100, 64, true}), Interventions::Answer::processed)
      << "the retry";
}

}  // namespace
}  // namespace bcisim::test
