// The cutter: which piece it takes, and what its checkpoint says.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convert/block_cache.hpp"
#include "convert/cut.hpp"
#include "format/reader.hpp"
#include "unit/sim/temporary_folder.hpp"
#include "unit/sim/whole_trace.hpp"

namespace bcisim::test {
namespace {

std::vector<std::uint64_t> numbers(const Checkpoint& checkpoint) {
  std::vector<std::uint64_t> all;
  for (const Checkpoint::Block& block : checkpoint.blocks) all.push_back(block.number);
  return all;
}

class Cut : public ::testing::Test {
 protected:
  // 100 instructions of 4 bytes from 0x1000 on, number i loads or (odd) stores block 1000 + i.
  Chunk straight() const {
    Chunk chunk;
    for (std::uint32_t i = 0; i < 100; ++i) {
      chunk.instructions.push_back({i, i, 1, false});
      chunk.references.push_back(
          {0x7f0000000000u + 64 * (1000u + i), 64 * (1000u + i), 8, i % 2 != 0});
    }
    return chunk;
  }
  void write(const Chunk& chunk) {
    TraceWriter writer(
        input, {{"workload", "w"}, {"symbols", {{"0x10", "first+0x1"}, {"0x20", "second+0x1"}}}});
    for (std::uint64_t i = 0; i < 100; ++i)
      writer.add_static({0x1000 + 4 * i, 1, 1, 1, 4, InstructionClass::simple});
    writer.add(chunk);
    writer.finish();
  }
  void run(std::uint64_t skip, std::uint64_t keep) {
    summary = cut({input, output, skip, keep, 3});
    TraceReader reader(output);
    piece = {};
    Chunk chunk;
    while (reader.next(chunk)) append(piece.contents, chunk);
    piece.statics = reader.statics();
    ASSERT_TRUE(reader.checkpoint());
    checkpoint = *reader.checkpoint();
    metadata = reader.metadata();
    EXPECT_EQ(piece.contents.instructions.size(), summary.kept);
    EXPECT_EQ(checkpoint.blocks.size(), summary.blocks);
  }
  std::uint64_t first_address() const {
    return piece.statics[piece.contents.instructions[0].what].address;
  }
  // What is said of the input when it cannot be cut.
  std::string refusal(std::uint64_t skip) const {
    try {
      cut({input, output, skip, 50, 3});
    } catch (const TraceError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(input));
      return std::string(error.what()).substr(input.size());
    }
    return "";
  }
  static CopyCall copy_from(std::uint64_t site) {
    return {CopyKind::copy, site, 0x1000, 0x2000, 8, {1}, {2}};
  }

  TemporaryFolder folder;
  const std::string input = folder.path("a.trace"), output = folder.path("b.trace");
  CutSummary summary;
  WholeTrace piece;
  Checkpoint checkpoint;
  nlohmann::json metadata;
};

TEST_F(Cut, TakesThePieceAndWarmsTheCache) {
  write(straight());
  run(30, 50);
  EXPECT_EQ(summary.skipped, 30u);
  EXPECT_EQ(summary.kept, 50u);
  EXPECT_EQ(first_address(), 0x1000u + 4 * 30);
  EXPECT_EQ(piece.statics.size(), 50u);
  EXPECT_EQ(piece.contents.references[0].physical, 64u * 1030);
  // Blocks 64 and 65 of code, 1000 to 1029 of data.
  std::vector<std::uint64_t> expected = {64, 65};
  for (std::uint64_t i = 0; i < 30; ++i) expected.push_back(1000 + i);
  std::vector<std::uint64_t> found = numbers(checkpoint);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
  for (const Checkpoint::Block& block : checkpoint.blocks)
    EXPECT_EQ(block.dirty, block.number >= 1000 && block.number % 2 != 0) << block.number;
  EXPECT_EQ(checkpoint.blocks.front().number, 1000u);  // the oldest: the code goes on being used
  EXPECT_EQ(metadata["cut"]["skipped"], 30);
  EXPECT_EQ(metadata["workload"], "w");
}

TEST_F(Cut, KeepsWhatThereIs) {
  write(straight());
  run(90, 50);
  EXPECT_EQ(summary.kept, 10u);
  run(0, 100);
  EXPECT_EQ(summary.kept, 100u);
  EXPECT_TRUE(checkpoint.blocks.empty());
}

TEST_F(Cut, ACopyAtTheBeginningIsSkippedAndOneAtTheEndKept) {
  Chunk chunk = straight();
  chunk.copies = {copy_from(0x10), copy_from(0x20), copy_from(0x10)};
  chunk.events = {{Event::Kind::copy_begin, 25, 0}, {Event::Kind::copy_end, 35, 0},
                  {Event::Kind::copy_begin, 70, 1}, {Event::Kind::copy_end, 90, 0},
                  {Event::Kind::copy_begin, 90, 2}, {Event::Kind::copy_end, 95, 0}};
  write(chunk);
  run(30, 40);
  EXPECT_EQ(summary.skipped, 35u);
  EXPECT_EQ(summary.kept, 55u);  // 35 to 74, and what is left of the copy
  EXPECT_EQ(piece.contents.copies.size(), 1u);
}

TEST_F(Cut, WhatDevicesWroteIsNotWarm) {
  Chunk chunk = straight();
  chunk.devices = {{64 * 1005 + 10, 100, true}, {64 * 1009, 64, false}, {64 * 1050, 1, true}};
  chunk.events = {
      {Event::Kind::device, 20, 0}, {Event::Kind::device, 20, 1}, {Event::Kind::device, 60, 2}};
  write(chunk);
  run(30, 50);
  const std::vector<std::uint64_t> found = numbers(checkpoint);
  const auto holds = [&](std::uint64_t block) {
    return std::find(found.begin(), found.end(), block) != found.end();
  };
  EXPECT_TRUE(holds(1004));
  EXPECT_FALSE(holds(1005));
  EXPECT_FALSE(holds(1006));
  EXPECT_TRUE(holds(1007));
  EXPECT_TRUE(holds(1009));
  ASSERT_EQ(piece.contents.devices.size(), 1u);
  EXPECT_EQ(piece.contents.events[0].before, 30u);
}

TEST_F(Cut, SymbolsAreThoseOfItsCopies) {
  Chunk chunk = straight();
  chunk.copies = {copy_from(0x10), copy_from(0x20)};
  chunk.events = {{Event::Kind::copy_begin, 5, 0},
                  {Event::Kind::copy_end, 6, 0},
                  {Event::Kind::copy_begin, 50, 1},
                  {Event::Kind::copy_end, 60, 0}};
  write(chunk);
  run(30, 50);
  EXPECT_EQ(metadata["symbols"], (nlohmann::json{{"0x20", "second+0x1"}}));
}

TEST_F(Cut, APieceOfAPieceStartsFromItsCheckpoint) {
  write(straight());
  run(30, 50);
  const Checkpoint whole_way = checkpoint;
  std::filesystem::rename(output, input);
  run(10, 10);
  EXPECT_EQ(first_address(), 0x1000u + 4 * 40);
  EXPECT_EQ(checkpoint.blocks.size(), whole_way.blocks.size() + 11);  // one of code
}

TEST_F(Cut, AnyTraceCutAnywhereIsAsInTheWhole) {
  AnyContents any(11);
  Chunk contents = any.chunk(9000, 100);
  write(contents);
  for (const std::uint64_t skip : {1u, 4095u, 4096u, 5000u}) {
    run(skip, 1500);
    const auto first = static_cast<std::ptrdiff_t>(summary.skipped);
    EXPECT_GE(summary.skipped, skip);
    EXPECT_GE(summary.kept, 1500u);
    for (std::size_t i = 0; i < piece.contents.instructions.size(); ++i) {
      const DynamicInstruction& found = piece.contents.instructions[i];
      const DynamicInstruction& whole = contents.instructions[static_cast<std::size_t>(first) + i];
      ASSERT_EQ(piece.statics[found.what].address, 0x1000 + 4u * whole.what);
      ASSERT_EQ(found.taken, whole.taken);
      ASSERT_EQ(found.references, whole.references);
      for (unsigned k = 0; k < found.references; ++k)
        ASSERT_TRUE(same(piece.contents.references[found.first_reference + k],
                         contents.references[whole.first_reference + k]));
    }
  }
}

TEST_F(Cut, ATraceThatIsTooShortIsRefused) {
  write(straight());
  EXPECT_EQ(refusal(100), ": has 100 instructions, none behind the 100 to skip; skip fewer");
  EXPECT_EQ(folder.files(), 1);
}

TEST_F(Cut, ATraceWithoutInstructionsIsNotToldToSkipFewer) {
  write({});
  EXPECT_EQ(refusal(0), ": has no instructions; name a trace that has");
  EXPECT_EQ(refusal(5), ": has no instructions; name a trace that has");
  EXPECT_EQ(folder.files(), 1);
}

TEST_F(Cut, WhereACopyIsAllThatIsLeftItSaysSo) {
  Chunk chunk = straight();
  chunk.copies = {copy_from(0x10)};
  chunk.events = {{Event::Kind::copy_begin, 25, 0}, {Event::Kind::copy_end, 100, 0}};
  write(chunk);
  EXPECT_EQ(refusal(60),
            ": behind the 60 instructions to skip is the rest of a copy alone, and a copy that has "
            "begun is skipped whole; skip fewer");
  EXPECT_EQ(folder.files(), 1);
}

TEST(BlockCache, ForgetsTheLeastRecentlyUsedOfASet) {
  BlockCache cache;
  const auto block = [](std::uint64_t i) { return i * BlockCache::sets * 64; };
  for (std::uint64_t i = 0; i < BlockCache::ways; ++i) cache.load(block(i), 8);
  cache.store(block(0), 8);  // used again
  cache.load(block(99), 8);  // number 1 goes
  const std::vector<std::uint64_t> found = numbers(cache.checkpoint());
  EXPECT_EQ(found.size(), BlockCache::ways);
  EXPECT_EQ(std::count(found.begin(), found.end(), BlockCache::sets), 0);
  EXPECT_EQ(std::count(found.begin(), found.end(), 0), 1);
  EXPECT_EQ(found.front(), 2 * BlockCache::sets);
  EXPECT_EQ(found.back(), 99 * BlockCache::sets);
}

TEST(BlockCache, AFullCheckpointIsSmall) {
  BlockCache cache;
  std::uint64_t state = 1;
  for (int i = 0; i < 300000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    cache.store((state >> 35) * 64 % (std::uint64_t{1} << 30), 256);
  }
  const Checkpoint checkpoint = cache.checkpoint();
  ASSERT_GT(checkpoint.blocks.size(), 130000u);
  TemporaryFolder folder;
  TraceWriter writer(folder.path("a"), nlohmann::json::object());
  writer.set_checkpoint(checkpoint);
  writer.finish();
  EXPECT_LT(folder.read("a").size(), checkpoint.blocks.size() * 3 / 2);
}

}  // namespace
}  // namespace bcisim::test
