// The trace format: what was written is read again, and what is damaged is refused.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>

#include "format/bytes.hpp"
#include "format/reader.hpp"
#include "format/writer.hpp"
#include "unit/sim/temporary_folder.hpp"
#include "unit/sim/whole_trace.hpp"

namespace bcisim::test {
namespace {

class Format : public ::testing::Test {
 protected:
  static WholeTrace read_whole(TraceReader& reader) {
    WholeTrace whole;
    Chunk chunk;
    while (reader.next(chunk)) {
      EXPECT_LE(chunk.instructions.size(), most_instructions_of_chunk);
      append(whole.contents, chunk);
    }
    whole.statics = reader.statics();
    return whole;
  }

  // A small trace with everything in it.
  std::string write_small() {
    AnyContents random(7);
    TraceWriter writer(path, {{"workload", "none"}});
    writer.set_checkpoint({{{5, true}, {3, false}}});
    for (int i = 0; i < 10; ++i) writer.add_static(random.static_instruction());
    writer.add(random.chunk(100, 10));
    writer.finish();
    return folder.read("a.trace");
  }

  static std::string error_of(const std::string& bytes) {
    try {
      TraceReader reader({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, "a");
      Chunk chunk;
      while (reader.next(chunk)) {
      }
    } catch (const TraceError& error) {
      return error.what();
    }
    return "none";
  }

  // Puts the checksum of the header right again.
  static std::string with_header_sum(std::string bytes) {
    const std::size_t length =
        64 + get_fixed<std::uint32_t>(reinterpret_cast<const std::uint8_t*>(&bytes[60]));
    Bytes sum;
    put_fixed(sum, crc32({reinterpret_cast<const std::uint8_t*>(bytes.data()), length}));
    bytes.replace(length, 4, std::string(sum.begin(), sum.end()));
    return bytes;
  }

  TemporaryFolder folder;
  const std::string path = folder.path("a.trace");
};

TEST_F(Format, RandomTracesComeBack) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    AnyContents random(seed);
    WholeTrace whole;
    TraceWriter writer(path, nlohmann::json::object(), 1);
    const std::uint32_t chunks = random.below(6);
    for (std::uint32_t i = 0; i < chunks; ++i) {
      for (std::uint32_t statics = 1 + random.below(300); statics != 0; --statics) {
        whole.statics.push_back(random.static_instruction());
        EXPECT_EQ(writer.add_static(whole.statics.back()), whole.statics.size() - 1);
      }
      const Chunk chunk =
          random.chunk(random.below(9000), static_cast<std::uint32_t>(whole.statics.size()));
      writer.add(chunk);
      append(whole.contents, chunk);
    }
    writer.finish();
    TraceReader reader(path);
    const WholeTrace read = read_whole(reader);
    expect_same(whole, read);
    EXPECT_EQ(reader.totals().instructions, whole.contents.instructions.size());
    EXPECT_EQ(reader.totals().copies, whole.contents.copies.size());
  }
}

TEST_F(Format, AnEmptyTraceIsATrace) {
  TraceWriter(path, nlohmann::json::object()).finish();
  TraceReader reader(path);
  Chunk chunk;
  EXPECT_FALSE(reader.next(chunk));
  EXPECT_FALSE(reader.next(chunk));
  EXPECT_EQ(reader.totals(), Totals{});
  EXPECT_FALSE(reader.checkpoint());
}

TEST_F(Format, MetadataAndCheckpointComeBack) {
  TraceWriter writer(path, {{"workload", "x"}});
  Checkpoint checkpoint;
  for (std::uint64_t i = 0; i < 1000; ++i)
    checkpoint.blocks.push_back({i * i * 7919 % 100003 << 20, i % 3 == 0});
  writer.set_checkpoint(checkpoint);
  writer.set_metadata({{"workload", "y"}, {"symbols", {{"0x1", "f+0x1"}}}});
  writer.finish();
  TraceReader reader(path);
  EXPECT_EQ(reader.metadata()["workload"], "y");
  EXPECT_EQ(reader.metadata()["symbols"]["0x1"], "f+0x1");
  ASSERT_TRUE(reader.checkpoint());
  ASSERT_EQ(reader.checkpoint()->blocks.size(), 1000u);
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(reader.checkpoint()->blocks[i].number, checkpoint.blocks[i].number);
    EXPECT_EQ(reader.checkpoint()->blocks[i].dirty, checkpoint.blocks[i].dirty);
  }
}

TEST_F(Format, ManyFramesAndFullTablesComeBack) {
  AnyContents random(3);
  TraceWriter writer(path, nlohmann::json::object(), 1);
  WholeTrace whole;
  for (unsigned i = 0; i < 70000; ++i) {  // more forms than layout::table_entries
    StaticInstruction instruction = random.static_instruction();
    instruction.reads = i % 66000;
    instruction.steps &= instruction.reads;
    whole.statics.push_back(instruction);
    writer.add_static(instruction);
  }
  for (unsigned i = 0; i < 10; ++i) {
    const Chunk chunk = random.chunk(120000, 70000);
    writer.add(chunk);
    append(whole.contents, chunk);
  }
  writer.finish();
  TraceReader reader(path);
  const WholeTrace read = read_whole(reader);
  expect_same(whole, read);
}

TEST_F(Format, WhatRepeatsIsSmall) {
  TraceWriter writer(path, nlohmann::json::object());
  for (std::uint32_t i = 0; i < 100; ++i)
    writer.add_static({0x1000 + 4 * i, 1, 1, 2, 4, InstructionClass::simple});
  Chunk chunk;
  for (std::uint32_t i = 0; i < 100000; ++i) {
    chunk.instructions.push_back({i % 100, i, 1, false});
    chunk.references.push_back({0x7f0000000000u + 8 * i, 0x5000000000u + 8 * i, 8, i % 2 == 0});
  }
  writer.add(chunk);
  writer.finish();
  EXPECT_LT(folder.read("a.trace").size(), 1500u);
}

TEST_F(Format, ATruncatedTraceIsRefused) {
  const std::string whole = write_small();
  ASSERT_EQ(error_of(whole), "none");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string error = error_of(whole.substr(0, length));
    const std::string expected =
        length == 0 ? "a, offset 0: the file is empty; name a trace that bcisim made"
                    : "a, offset " + std::to_string(length) +
                          ": the file ends too early, it was cut; copy it or make it again";
    ASSERT_EQ(error, expected);
  }
}

TEST_F(Format, AFlippedBitIsFound) {
  const std::string whole = write_small();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
    ASSERT_NE(error_of(damaged), "none") << at;
  }
}

TEST_F(Format, EachFaultHasItsMessage) {
  const std::string whole = write_small();
  EXPECT_EQ(error_of("BCITRASH" + whole.substr(8)),
            "a, offset 0: the file is no trace of bcisim; name one that bcisim made");
  EXPECT_EQ(error_of("PK"),
            "a, offset 0: the file is no trace of bcisim; name one that bcisim made");
  std::string other = whole;
  other[8] = 9;
  EXPECT_EQ(
      error_of(other),
      "a, offset 8: the trace is of version 9, this bcisim reads version 2; convert it again");
  other = whole;
  other[70] = static_cast<char>(other[70] ^ 1);
  EXPECT_EQ(
      error_of(other),
      "a, offset 0: the file is damaged, the checksum of its header is wrong; copy it or make "
      "it again");
  const std::size_t frame = 64 + std::string(R"({"workload":"none"})").size() + 4;
  other = whole;
  other[frame + 9] = static_cast<char>(other[frame + 9] ^ 1);
  EXPECT_EQ(error_of(other), "a, offset " + std::to_string(frame) +
                                 ": the file is damaged, the checksum of a frame is wrong; copy it "
                                 "or make it again");
  other = whole;
  other[frame] = 7;
  EXPECT_NE(error_of(other).find("a frame is of no known kind"), std::string::npos);
  other = whole;
  other[frame + 7] = 0x7f;
  EXPECT_NE(error_of(other).find("a frame is too long"), std::string::npos);
  other = whole;
  other[63] = 0x7f;
  EXPECT_NE(error_of(other).find("a, offset 60: the file is damaged, its metadata are too long"),
            std::string::npos);
  EXPECT_NE(error_of(whole + "x").find("something follows its end"), std::string::npos);
  other = whole;
  other[12 + 8] = static_cast<char>(other[12 + 8] + 1);  // the number of instructions
  EXPECT_NE(error_of(with_header_sum(other)).find("it holds more or less than its header says"),
            std::string::npos);
  other = whole;
  other[64] = '[';
  EXPECT_NE(error_of(with_header_sum(other)).find("its metadata are no JSON object"),
            std::string::npos);
}

TEST_F(Format, AMissingFileIsNamed) {
  try {
    TraceReader reader(folder.path("none"));
    FAIL();
  } catch (const TraceError& error) {
    EXPECT_EQ(error.what(), folder.path("none") +
                                ": cannot be read (No such file or directory); "
                                "name a trace that is there and may be read");
  }
  EXPECT_THROW(TraceReader reader(folder.path(".")), TraceError);
  EXPECT_THROW(TraceWriter(folder.path("no/folder"), nlohmann::json::object()), TraceError);
}

TEST_F(Format, AnErrorComesAgain) {
  std::string damaged = write_small();
  damaged[damaged.size() - 1] = static_cast<char>(damaged[damaged.size() - 1] ^ 1);
  folder.write("a.trace", damaged);
  TraceReader reader(path);
  Chunk chunk;
  EXPECT_TRUE(reader.next(chunk));
  EXPECT_THROW(reader.next(chunk), TraceError);
  EXPECT_THROW(reader.next(chunk), TraceError);
}

TEST_F(Format, AnUnfinishedTraceLeavesNoFile) {
  {
    TraceWriter writer(path, nlohmann::json::object());
    writer.add_static({1, 1, 1, 1, 1, InstructionClass::simple});
    EXPECT_EQ(folder.files(), 1);
  }
  EXPECT_EQ(folder.files(), 0);
}

TEST_F(Format, AFullDiskLeavesNoFile) {
  const rlimit small{10000, RLIM_INFINITY};
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  AnyContents random(1);
  const auto write = [&] {
    TraceWriter writer(path, nlohmann::json::object());
    for (int i = 0; i < 1000; ++i) writer.add_static(random.static_instruction());
    writer.add(random.chunk(10000, 1000));
    writer.finish();
  };
  EXPECT_THROW(write(), TraceError);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(folder.files(), 0);
}

TEST_F(Format, TheWriterRefusesWhatBreaksTheRules) {
  const auto refuses = [&](const Chunk& chunk) {
    TraceWriter writer(path, nlohmann::json::object());
    writer.add_static({0x1000, 1, 0, 0, 4, InstructionClass::simple});
    try {
      writer.add(chunk);
      writer.finish();
    } catch (const TraceError&) {
      return true;
    }
    return false;
  };
  Chunk good;
  good.instructions = {{0, 0, 1, false}};
  good.references = {{0x2000, 0x3000, 8, false}};
  EXPECT_FALSE(refuses(good));
  Chunk chunk = good;
  chunk.instructions[0].what = 1;
  EXPECT_TRUE(refuses(chunk));
  chunk = good;
  chunk.instructions[0].references = 2;
  EXPECT_TRUE(refuses(chunk));
  for (const Reference reference : {Reference{0x2ffc, 0x3ffc, 8, false},
                                    {0x2000, 0x3008, 8, false},
                                    {0x2000, 0x3000, 0, false},
                                    {0x2000, 0x3000, 513, false}}) {
    chunk = good;
    chunk.references[0] = reference;
    EXPECT_TRUE(refuses(chunk));
  }
  chunk = good;
  chunk.events = {{Event::Kind::copy_end, 0, 0}};
  EXPECT_TRUE(refuses(chunk));
  chunk.events = {{Event::Kind::copy_begin, 0, 0}};
  chunk.copies = {{CopyKind::fill, 1, 0x1000, 0, 10, {5}, {}}};
  EXPECT_TRUE(refuses(chunk));  // it does not end
  chunk.events.push_back({Event::Kind::copy_end, 1, 0});
  EXPECT_FALSE(refuses(chunk));
  chunk.copies[0].destination_pages.push_back(6);
  EXPECT_TRUE(refuses(chunk));
  chunk.copies[0] = {CopyKind::fill, 1, 0x1000, 0, 0, {}, {}};
  EXPECT_TRUE(refuses(chunk));
  chunk = good;
  chunk.events = {{Event::Kind::interrupt, 1, 0}, {Event::Kind::interrupt, 0, 0}};
  EXPECT_TRUE(refuses(chunk));
  chunk = good;
  chunk.devices = {{0, 1, false}};
  EXPECT_TRUE(refuses(chunk));  // without an event
  TraceWriter writer(path, nlohmann::json::object());
  EXPECT_THROW(writer.add_static({1, 1, 1, 1, 16, InstructionClass::simple}), TraceError);
  EXPECT_THROW(writer.add_static({1, 1, 1ull << 50, 1, 1, InstructionClass::simple}), TraceError);
}

}  // namespace
}  // namespace bcisim::test
