// What `haul run --mpi --report` says, from what endpoints tell: sizes and paces, packets of any
// content, sums and sentences.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cli/mpi/report/fabric_buffers.hpp"
#include "cli/mpi/report/fabric_gains.hpp"
#include "cli/mpi/report/fabric_large.hpp"
#include "cli/mpi/report/fabric_reply.hpp"
#include "sizes.hpp"

namespace haul::cli {
namespace {

using fabric::LargeMessages;
using fabric::MemoryKind;
using fabric::MonitorReply;
using fabric::Path;

TEST(LargeMessages, SizesFallIntoTheirClasses) {
  EXPECT_EQ(fabric::large_class(64 * kib), 0u);
  EXPECT_EQ(fabric::large_class(256 * kib - 1), 0u);
  EXPECT_EQ(fabric::large_class(256 * kib), 1u);
  EXPECT_EQ(fabric::large_class(mib), 2u);
  EXPECT_EQ(fabric::large_class(16 * mib), 4u);
  EXPECT_EQ(fabric::large_class(~std::uint64_t{0}), fabric::large_classes - 1);
  EXPECT_EQ(fabric::large_from(2), mib);
}

TEST(LargeMessages, APaceIsToldWithinAnEighth) {
  for (const std::uint64_t bytes : {64 * kib, mib + 1, 37 * mib}) {
    for (const double pace : {0.004, 0.01, 0.05, 0.0999, 0.3, 1.0, 7.0, 20.0}) {  // ns a byte
      const double taken = pace * static_cast<double>(bytes);
      const double told = fabric::pace_of(
          fabric::pace_bucket(static_cast<std::uint64_t>(std::lround(taken)), bytes));
      EXPECT_NEAR(told / pace, 1, 0.126) << pace << " ns a byte, " << bytes << " bytes";
    }
  }
  EXPECT_EQ(fabric::pace_bucket(0, mib), 0u);
  EXPECT_EQ(fabric::pace_bucket(1, 0), 0u);
  EXPECT_EQ(fabric::pace_bucket(~std::uint64_t{0}, 1), fabric::pace_buckets - 1);
}

// What an endpoint tells after these messages.
struct Told {
  LargeMessages large;
  MonitorReply reply;
  Told& count(Path path, std::uint64_t bytes, std::uint64_t ns, unsigned times = 1,
              bool aside = false) {
    for (unsigned i = 0; i < times; ++i) large.count(path, bytes, ns, aside);
    large.fill(reply.large, &reply.large_aside);
    return *this;
  }
};

TEST(LargeSums, TheMedianOfAllRanksIsComparedWithTheRing) {
  const auto one = std::make_unique<Told>(), other = std::make_unique<Told>();
  one->count(Path::mapped, mib, 30'000, 60, true);
  one->count(Path::mapped, mib, 900'000'000, 2);  // a rank that computed meanwhile
  other->count(Path::mapped, mib, 30'000, 40).count(Path::ring, 100'000, 20'000, 3);
  other->count(Path::eager, 64 * kib, 0, 5);
  const RingPrice ring{true, 2000, 8};
  const LargeSums sums = sum_large({&one->reply, &other->reply}, ring);
  ASSERT_EQ(sums.rows.size(), 3u);
  EXPECT_EQ(sums.rows[0].path, Path::eager);
  EXPECT_EQ(sums.rows[0].typical_ns, 0);
  EXPECT_EQ(sums.rows[1].path, Path::ring);
  EXPECT_NEAR(sums.rows[1].typical_ns, 20'000, 2600);
  EXPECT_EQ(sums.rows[1].gained_ns, 0);
  const LargeRow& mapped = sums.rows[2];
  EXPECT_EQ(mapped.messages, 102u);
  EXPECT_EQ(mapped.bytes, 102 * mib);
  EXPECT_NEAR(mapped.typical_ns, 30'000, 3900);
  EXPECT_DOUBLE_EQ(mapped.ring_ns, 2000 + 16384 * 8);
  EXPECT_DOUBLE_EQ(mapped.gained_ns, (mapped.ring_ns - mapped.typical_ns) * 102);
  EXPECT_EQ(sums.aside, 60u);
  EXPECT_EQ(sums.messages, 110u);
  EXPECT_DOUBLE_EQ(sums.direct_ring_ns - sums.direct_ns, mapped.gained_ns);
}

fabric::SlowBuffer slow(MemoryKind kind, const char* name, std::uint64_t sent,
                        std::uint64_t bytes) {
  fabric::SlowBuffer buffer;
  buffer.kind = static_cast<std::uint8_t>(kind);
  std::snprintf(buffer.name, sizeof buffer.name, "%s", name);
  buffer.sent_messages = sent;
  buffer.bytes = buffer.largest = bytes;
  return buffer;
}

TEST(BufferSums, RanksWithTheSameMemoryAreOneRow) {
  std::vector<std::unique_ptr<MonitorReply>> replies;
  std::vector<const MonitorReply*> all;
  for (const int rank : {10, 9, -1}) {
    replies.push_back(std::make_unique<MonitorReply>());
    MonitorReply& reply = *replies.back();
    reply.rank = rank;
    reply.pid = 4711;
    reply.slow[0] = slow(MemoryKind::static_data, "a.out", 2, 100);
    reply.slow[1] = slow(MemoryKind::stack, "", 1, rank == 9 ? 1000 : 0);
    reply.slow_count = 2;
    reply.slow_others = slow(MemoryKind::unknown, "", 7, 50);
    all.push_back(&reply);
  }
  const BufferSums sums = sum_buffers(all);
  ASSERT_EQ(sums.rows.size(), 2u);
  EXPECT_EQ(sums.rows[0].kind, MemoryKind::stack);  // more bytes
  EXPECT_EQ(sums.rows[1].sent_messages, 6u);
  EXPECT_EQ(sums.rows[1].ranks, (std::vector<std::string>{"9", "10", "pid 4711"}));
  EXPECT_EQ(sums.other_messages, 21u);
  EXPECT_EQ(memory_name(MemoryKind::static_data, "a.out"), "static data of a.out");
  EXPECT_EQ(memory_name(MemoryKind::file, "data"), "a mapped file (data)");
}

TEST(BufferSums, EachKindHasARemedyThatTheJobHasNotTakenYet) {
  for (std::size_t i = 0; i < fabric::memory_kind_count; ++i) {
    const auto kind = static_cast<MemoryKind>(i);
    for (const SharedMemory shared :
         {SharedMemory::none, SharedMemory::of_mpi, SharedMemory::of_malloc}) {
      const std::string remedy = memory_remedy(kind, shared);
      EXPECT_NE(remedy, "");
      if (shared == SharedMemory::of_malloc) {
        EXPECT_EQ(remedy.find("run with --memory"), std::string::npos) << remedy;
      }
    }
  }
  EXPECT_NE(memory_remedy(MemoryKind::anonymous, SharedMemory::none).find("--memory=shared"),
            std::string::npos);
}

// What is printed for these.
std::string printed(const std::vector<EndpointReport>& reports, const RingPrice& ring,
                    SharedMemory shared = SharedMemory::none) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  print_large(stream, reports, ring, shared);
  std::fclose(stream);
  std::string all(text, size);
  std::free(text);
  return all;
}

TEST(LargeReport, SaysNothingWithoutLargeMessages) {
  EXPECT_EQ(printed({}, {true, 1, 1}), "");
  EXPECT_EQ(printed({EndpointReport()}, {}), "");
}

TEST(LargeReport, SaysWhatWasGainedAndWhatToDo) {
  const auto told = std::make_unique<Told>();
  told->count(Path::mapped, mib, 30'000, 100).count(Path::ring, mib, 130'000, 10);
  told->reply.slow[0] = slow(MemoryKind::stack, "", 10, 10 * mib);
  told->reply.slow_count = 1;
  told->reply.rank = 3;
  std::vector<EndpointReport> reports(1);
  reports[0].reply = told->reply;
  std::string text = printed(reports, {true, 2000, 8});
  for (const char* part : {"1 MiB - 4 MiB", "mapped", "more (estimated by this machine's",
                           "the stack", "--memory=shared", "MPI_Alloc_mem()"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in:\n" << text;
  EXPECT_EQ(text.find("while their rank computed"), std::string::npos);
  EXPECT_EQ(text.find("times what the calibration says"), std::string::npos) << text;
  // A busy machine.
  EXPECT_NE(printed(reports, {true, 500, 4}).find("through the ring took 1."), std::string::npos)
      << printed(reports, {true, 500, 4});
  // Without a calibration nothing is estimated.
  text = printed(reports, {false, 2000, 8});
  EXPECT_EQ(text.find("(estimated by"), std::string::npos) << text;
  EXPECT_NE(text.find("haul tune"), std::string::npos) << text;
  told->count(Path::mapped, mib, 30'000, 5, true);
  reports[0].reply = told->reply;
  text = printed(reports, {true, 2000, 8}, SharedMemory::of_malloc);
  EXPECT_NE(text.find("5 of these 115 messages arrived while"), std::string::npos) << text;
  // A path that costs more than the ring is not hidden.
  text = printed(reports, {true, 0, 0.1});
  EXPECT_NE(text.find("less (estimated"), std::string::npos) << text;
  const auto document = large_document(reports, {true, 2000, 8}, SharedMemory::none);
  EXPECT_EQ(document["large_messages"].size(), 2u);
  EXPECT_EQ(document["unmapped_memory"][0]["kind"], "stack");
  EXPECT_EQ(document["unmapped_memory"][0]["rank"], 3);
}

TEST(MonitorReply, OfAnotherVersionOrLengthIsRefused) {
  const auto sent = std::make_unique<MonitorReply>(), read = std::make_unique<MonitorReply>();
  EXPECT_TRUE(check_reply(sent.get(), sizeof *sent, read.get()));
  EXPECT_FALSE(check_reply(sent.get(), sizeof *sent - 1, read.get()));
  EXPECT_FALSE(check_reply(sent.get(), 0, read.get()));
  // The first version's: shorter, and whoever asks with its room sees its number.
  sent->version = 1;
  EXPECT_FALSE(check_reply(sent.get(), sizeof *sent, read.get()));
  sent->version = 3;
  EXPECT_FALSE(check_reply(sent.get(), sizeof *sent, read.get()));
  sent->version = MonitorReply().version;
  sent->magic ^= 1;
  EXPECT_FALSE(check_reply(sent.get(), sizeof *sent, read.get()));
}

bool is_printable(const char* text, std::size_t room) {
  const std::size_t length = strnlen(text, room);
  if (length == room) return false;
  for (std::size_t i = 0; i < length; ++i)
    if (text[i] < ' ' || text[i] > '~') return false;
  return true;
}

// Random bytes behind a head that is accepted: nothing out of bounds is read, and nothing that a
// terminal obeys is printed.
TEST(MonitorReply, AnyContentIsBoundedAndPrintable) {
  std::mt19937_64 random(18);
  const auto sent = std::make_unique<MonitorReply>();
  std::vector<EndpointReport> reports(2);
  for (int round = 0; round < 200; ++round) {
    auto* bytes = reinterpret_cast<std::uint64_t*>(sent.get());
    static_assert(sizeof *sent % sizeof *bytes == 0);
    for (std::size_t i = 0; i < sizeof *sent / sizeof *bytes; ++i)
      bytes[i] = round % 4 == 0 ? ~std::uint64_t{0} : random() >> random() % 64;
    sent->magic = MonitorReply().magic;
    sent->version = MonitorReply().version;
    for (EndpointReport& report : reports) {
      MonitorReply& reply = report.reply;
      ASSERT_TRUE(check_reply(sent.get(), sizeof *sent, &reply));
      ASSERT_LE(reply.peer_count, std::uint32_t{MonitorReply::peer_capacity});
      ASSERT_LE(reply.slow_count, std::uint32_t{MonitorReply::slow_capacity});
      ASSERT_GE(reply.rank, -1);
      for (const auto& peer : reply.peer) ASSERT_TRUE(is_printable(peer.why, sizeof peer.why));
      for (const auto& buffer : reply.slow) {
        ASSERT_LT(buffer.kind, fabric::memory_kind_count);
        ASSERT_TRUE(is_printable(buffer.name, sizeof buffer.name));
        ASSERT_LE(buffer.begin, buffer.end);
      }
    }
    for (const char c : printed(reports, {true, 1000, 1}))
      ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << static_cast<int>(c);
    ASSERT_NE(large_document(reports, {true, 1000, 1}, SharedMemory::none).dump(), "");
  }
}

}  // namespace
}  // namespace haul::cli
