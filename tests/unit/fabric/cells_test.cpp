// Payload memory that two sides pass to and fro.
#include "fabric/transport/local/cells.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>

#include "sizes.hpp"
#include "unit/fabric/harness.hpp"

namespace haul::fabric::test {
namespace {

// Two sides, a segment and a ring each way.
class CellsTest : public testing::Test {
 protected:
  struct Side {
    std::unique_ptr<RingSegment, Unmap> segment{map_segment()};
    PairCells both;
    Cells& cells = both.small;
  };
  CellsTest() {
    for (unsigned i = 0; i < 2; ++i) {
      sides_[i].both.have_own(*sides_[i].segment);
      sides_[i].both.have_peers(*sides_[1 - i].segment);
    }
  }
  // A packet from a to b, read at once; the memory that it went by, or nullptr.
  static const std::byte* send(Side& a, Side& b) {
    const CellName cell = a.cells.take();
    if (cell == 0) return nullptr;
    const std::byte* const written = a.cells.memory(cell);
    a.cells.pass(cell);
    const std::byte* const read = b.cells.arrived(cell);
    EXPECT_EQ(read, written);
    b.cells.keep(cell);
    return read;
  }
  Side sides_[2];
  Side &a_ = sides_[0], &b_ = sides_[1];
};

TEST_F(CellsTest, AnAnswerIsWrittenToTheLinesThatTheQuestionCameIn) {
  const std::byte* const question = send(a_, b_);
  ASSERT_NE(question, nullptr);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(send(b_, a_), question);
    EXPECT_EQ(send(a_, b_), question);
  }
}

TEST_F(CellsTest, LongAnswersTakeTheCellsOfLongQuestions) {
  std::set<const std::byte*> question, answer;
  for (int i = 0; i < 8; ++i) question.insert(send(a_, b_));
  for (int i = 0; i < 8; ++i) answer.insert(send(b_, a_));
  EXPECT_EQ(question.size(), 8u);
  EXPECT_EQ(question, answer);
}

TEST_F(CellsTest, WhoOnlySendsGetsItsCellsBack) {
  for (int i = 0; i < 10'000; ++i) ASSERT_NE(send(a_, b_), nullptr) << i;
  EXPECT_GE(a_.cells.available(cell_count), cell_count - 8);
}

TEST_F(CellsTest, WhoGetsNoneBackHasNoneLeft) {
  for (unsigned i = 0; i < cell_count; ++i) {
    const CellName cell = a_.cells.take();
    ASSERT_NE(cell, 0);
    a_.cells.pass(cell);
  }
  EXPECT_EQ(a_.cells.take(), 0);
  EXPECT_EQ(a_.cells.available(cell_count), 0u);
}

TEST_F(CellsTest, OneSideWithoutThePeersSegmentUsesItsOwn) {
  Side alone;
  EXPECT_EQ(alone.cells.take(), 0) << "it has none yet";
  EXPECT_EQ(alone.cells.arrived(1), nullptr);
  alone.both.have_own(*alone.segment);
  EXPECT_EQ(alone.cells.available(cell_count), cell_count);
  EXPECT_EQ(alone.cells.arrived(1), nullptr);
}

// Both send at random, and read late: each cell is with one side, or under way, at any time.
TEST_F(CellsTest, ACellIsNeverWithBoth) {
  std::mt19937 random(20261128);
  std::deque<CellName> way[2];
  std::set<const std::byte*> written[2];  // under way, by direction
  for (int step = 0; step < 200'000; ++step) {
    const unsigned from = random() % 2;
    if (random() % 2 == 0) {
      const CellName cell = sides_[from].cells.take();
      if (cell == 0) continue;
      const std::byte* const memory = sides_[from].cells.memory(cell);
      ASSERT_EQ(written[0].count(memory) + written[1].count(memory), 0u) << step;
      written[from].insert(memory);
      sides_[from].cells.pass(cell);
      way[from].push_back(cell);
    } else if (!way[from].empty()) {
      const CellName cell = way[from].front();
      const std::byte* const memory = sides_[1 - from].cells.arrived(cell);
      ASSERT_EQ(written[from].erase(memory), 1u) << step;
      sides_[1 - from].cells.keep(cell);
      way[from].pop_front();
    }
  }
  for (unsigned from : {0u, 1u}) {
    for (; !way[from].empty(); way[from].pop_front())
      sides_[1 - from].cells.keep(way[from].front());
  }
  unsigned all = 0;
  for (Side& side : sides_) {
    std::set<const std::byte*> taken;
    for (CellName cell = side.cells.take(); cell != 0; cell = side.cells.take())
      taken.insert(side.cells.memory(cell));
    all += static_cast<unsigned>(taken.size());
  }
  EXPECT_EQ(all, 2 * cell_count) << "none is lost, none is there twice";
}

TEST_F(CellsTest, WhatThePeerDoesNotHaveItCannotName) {
  for (unsigned name = 0; name < 256; ++name) {
    const bool peers_own = name >= 1 && name <= cell_count;
    EXPECT_EQ(a_.cells.arrived(static_cast<CellName>(name)) != nullptr, peers_own) << name;
  }
  const CellName sent = b_.cells.take();
  b_.cells.pass(sent);
  ASSERT_NE(a_.cells.arrived(sent), nullptr);
  a_.cells.keep(sent);
  EXPECT_EQ(a_.cells.arrived(sent), nullptr) << "it is here already";
  const CellName own = a_.cells.take();  // sent back
  a_.cells.pass(own);
  EXPECT_NE(a_.cells.arrived(sent), nullptr);
}

TEST_F(CellsTest, ReturnsThatCannotBeAreBelievedNoFurther) {
  RingSegment::Returns& returns = a_.segment->returns;
  for (unsigned i = 0; i < cell_count; ++i) a_.cells.pass(a_.cells.take());
  returns.count = cell_count + 1;
  EXPECT_EQ(a_.cells.take(), 0) << "more than there are";
  returns.count = cell_count;  // the first, as often as there are cells
  EXPECT_EQ(a_.cells.available(cell_count), 1u);
  EXPECT_NE(a_.cells.take(), 0);
  EXPECT_EQ(a_.cells.take(), 0);
  for (auto& cell : returns.cells) cell = 0xff;
  returns.count = 2 * cell_count;
  EXPECT_EQ(a_.cells.take(), 0);
}

// ---- by the ring ----
class CellsByRing : public CellsTest {
 protected:
  CellsByRing() {
    HaulPrivateRing ring;
    ring.cell_from_bytes = 1 * kib;
    for (unsigned i = 0; i < 2; ++i) {
      outbox_[i].emplace(
          *sides_[i].segment, [](void*) noexcept {}, nullptr, ring, &sides_[i].both);
      inbox_[i].emplace(*sides_[1 - i].segment, &sides_[i].both);
    }
  }
  // The number of a message that was written, and is expected.
  bool write(unsigned from, std::size_t bytes, unsigned number,
             PacketKind kind = PacketKind::message) {
    const bool piece = kind == PacketKind::data;
    const Outbox::Slot slot =
        outbox_[from]->reserve(bytes, piece ? Outbox::Lane::bulk : Outbox::Lane::eager);
    if (slot.header == nullptr) return false;
    *slot.header = Header{};
    slot.header->kind = kind;
    slot.header->payload = static_cast<std::uint32_t>(bytes);
    std::memset(slot.payload, static_cast<int>(number), bytes);
    outbox_[from]->commit();
    return true;
  }
  const std::byte* read(unsigned by, std::size_t bytes, unsigned number) {
    ReceivedPacket packet;
    if (inbox_[by]->receive(packet) != Inbox::Got::packet) return nullptr;
    EXPECT_EQ(packet.header.payload, bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
      if (packet.payload[i] == static_cast<std::byte>(number)) continue;
      ADD_FAILURE() << "byte " << i << " of message " << number;
      return nullptr;
    }
    packet.inbox->ask_ahead();
    packet.inbox->fetch_ahead();
    inbox_[by]->release();
    return packet.payload;
  }
  bool is_cell(const std::byte* at) const {
    for (const Side& side : sides_) {
      const auto* const first = &side.segment->cells[0][0];
      if (at >= first && at < first + cell_count * cell_bytes) return true;
    }
    return false;
  }
  std::optional<RingOutbox> outbox_[2];
  std::optional<RingInbox> inbox_[2];
};

TEST_F(CellsByRing, PayloadsOfTheRightLengthGoInCells) {
  unsigned number = 0;
  for (const std::size_t bytes : {std::size_t{64}, 1 * kib - 1, 1 * kib, 8 * kib, 8 * kib + 1}) {
    ASSERT_TRUE(write(0, bytes, ++number));
    const std::byte* const at = read(1, bytes, number);
    ASSERT_NE(at, nullptr);
    EXPECT_EQ(is_cell(at), bytes >= 1 * kib && bytes <= 8 * kib) << bytes;
  }
}

TEST_F(CellsByRing, GoThroughTheRingWhenNoCellIsLeft) {
  unsigned written = 0;
  while (write(0, 2 * kib, written)) ++written;
  EXPECT_GT(written, cell_count + 8);
  unsigned in_cells = 0;
  for (unsigned i = 0; i < written; ++i) {
    const std::byte* const at = read(1, 2 * kib, i);
    ASSERT_NE(at, nullptr);
    in_cells += is_cell(at) ? 1 : 0;
  }
  EXPECT_EQ(in_cells, cell_count);
  ASSERT_TRUE(write(0, 2 * kib, 7)) << "all room is back";
}

TEST_F(CellsByRing, PiecesGoInLargeCellsOrNotAtAll) {
  for (unsigned i = 0; i < large_cell_count; ++i)
    ASSERT_TRUE(write(0, large_cell_bytes, i, PacketKind::data)) << i;
  EXPECT_FALSE(write(0, 100, 0, PacketKind::data));
  ASSERT_TRUE(write(0, 4 * kib, 99)) << "messages pass";
  for (unsigned i = 0; i < large_cell_count; ++i)
    ASSERT_NE(read(1, large_cell_bytes, i), nullptr) << i;
  ASSERT_NE(read(1, 4 * kib, 99), nullptr);
  const auto* const first = &sides_[0].segment->large_cells[0][0];
  ASSERT_TRUE(write(1, large_cell_bytes, 1, PacketKind::data));
  const std::byte* const answer = read(0, large_cell_bytes, 1);
  EXPECT_TRUE(answer >= first && answer < first + large_cell_count * large_cell_bytes)
      << "by the cell that the piece came in";
  EXPECT_FALSE(write(0, large_cell_bytes + 1, 0, PacketKind::data));
}

TEST_F(CellsByRing, PiecesThatNameNoLargeCellAreGarbage) {
  for (const unsigned name : {0u, large_cell_count + 1, 0x41u}) {
    Side fresh;
    fresh.both.have_own(*sides_[1].segment);
    RingInbox inbox(*sides_[0].segment, &fresh.both);
    outbox_[0].emplace(
        *sides_[0].segment, [](void*) noexcept {}, nullptr, HaulPrivateRing{}, &sides_[0].both);
    ASSERT_TRUE(write(0, 64, 1, PacketKind::data));
    auto* const header = reinterpret_cast<Header*>(sides_[0].segment->ring);
    header->payload = 64 | name << 24;
    ReceivedPacket packet;
    EXPECT_EQ(inbox.receive(packet), Inbox::Got::garbage) << name;
  }
}

TEST_F(CellsByRing, CarryBothDirectionsAtOnce) {
  std::mt19937 random(7);
  std::deque<std::pair<std::size_t, unsigned>> way[2];
  unsigned number = 0;
  for (int step = 0; step < 20'000; ++step) {
    const unsigned from = random() % 2;
    const std::size_t bytes = random() % (10 * kib);
    if (random() % 2 == 0) {
      if (write(from, bytes, number)) way[from].emplace_back(bytes, number++);
    } else if (!way[from].empty()) {
      const auto [expected, message] = way[from].front();
      way[from].pop_front();
      ASSERT_NE(read(1 - from, expected, message), nullptr) << step;
    }
  }
}

TEST_F(CellsByRing, PacketsThatNameAWrongCellAreGarbage) {
  auto* const header = reinterpret_cast<Header*>(sides_[0].segment->ring);
  for (const unsigned name : {0x21u, 0x40u, 0x41u, 0x7fu, 0xffu}) {
    Side fresh;
    fresh.both.have_own(*sides_[1].segment);
    RingInbox inbox(*sides_[0].segment, &fresh.both);
    outbox_[0].emplace(
        *sides_[0].segment, [](void*) noexcept {}, nullptr, HaulPrivateRing{});
    ASSERT_TRUE(write(0, 64, 1));
    header->payload |= name << 24;
    ReceivedPacket packet;
    EXPECT_EQ(inbox.receive(packet), Inbox::Got::garbage) << name;
  }
}

TEST_F(CellsByRing, TheNextPayloadIsFoundAheadOfTime) {
  ReceivedPacket packet;
  ASSERT_TRUE(write(0, 2 * kib, 1));
  ASSERT_EQ(inbox_[1]->receive(packet), Inbox::Got::packet);
  EXPECT_EQ(inbox_[1]->next_payload().at, nullptr) << "nothing has come";
  ASSERT_TRUE(write(0, 3 * kib, 2));
  const RingInbox::NextPayload next = inbox_[1]->next_payload();
  EXPECT_EQ(next.bytes, 3 * kib);
  inbox_[1]->release();
  ASSERT_EQ(inbox_[1]->receive(packet), Inbox::Got::packet);
  EXPECT_EQ(packet.payload, next.at);
  ASSERT_TRUE(write(0, large_cell_bytes, 3, PacketKind::data));
  const RingInbox::NextPayload piece = inbox_[1]->next_payload();
  inbox_[1]->release();
  ASSERT_EQ(inbox_[1]->receive(packet), Inbox::Got::packet);
  EXPECT_EQ(packet.payload, piece.at);
}

// What the next packet names is believed no more ahead of time than when its turn comes.
TEST_F(CellsByRing, LookingAheadBelievesNothing) {
  auto* const next = reinterpret_cast<Header*>(sides_[0].segment->ring + 128);
  for (const unsigned name : {0x21u, 0x40u, 0x41u, 0xffu}) {
    Side fresh;
    fresh.both.have_own(*sides_[1].segment);
    RingInbox inbox(*sides_[0].segment, &fresh.both);
    outbox_[0].emplace(
        *sides_[0].segment, [](void*) noexcept {}, nullptr, HaulPrivateRing{});
    ASSERT_TRUE(write(0, 64, 1));
    ASSERT_TRUE(write(0, 64, 2));
    next->payload |= name << 24;
    ReceivedPacket packet;
    ASSERT_EQ(inbox.receive(packet), Inbox::Got::packet);
    EXPECT_EQ(inbox.next_payload().at, nullptr) << name;
    inbox.fetch_ahead();
    inbox.release();
    EXPECT_EQ(inbox.receive(packet), Inbox::Got::garbage) << name;
  }
}

TEST_F(CellsByRing, PacketsOfMoreThanACellAreGarbage) {
  ASSERT_TRUE(write(0, 2 * kib, 1));
  auto* const header = reinterpret_cast<Header*>(sides_[0].segment->ring);
  header->payload += 8 * kib;
  ReceivedPacket packet;
  EXPECT_EQ(inbox_[1]->receive(packet), Inbox::Got::garbage);
}

TEST_F(CellsByRing, AWriterWithoutCellsAndAReaderWithoutThemGetAlong) {
  outbox_[0].emplace(
      *sides_[0].segment, [](void*) noexcept {}, nullptr, HaulPrivateRing{});
  inbox_[1].emplace(*sides_[0].segment);
  ASSERT_TRUE(write(0, 4 * kib, 1));
  EXPECT_FALSE(is_cell(read(1, 4 * kib, 1)));
}

// What is found to have room for all of its parts has it, however many cells are left.
TEST_F(CellsByRing, HoldsWhatItSaysItHolds) {
  for (const std::size_t part : {1 * kib, 2 * kib, 8 * kib, 16 * kib, 32 * kib}) {
    HaulPrivateRing ring;
    ring.part_bytes = part;
    ring.cell_from_bytes = 1 * kib;
    outbox_[0]->write_as(ring);
    for (unsigned messages = 0; outbox_[0]->holds(in_parts_bytes - 1); ++messages) {
      ASSERT_LT(messages, 100u);
      for (std::size_t left = in_parts_bytes - 1; left > 0;) {
        const std::size_t bytes = std::min(left, part);
        ASSERT_TRUE(write(0, bytes, messages)) << part << ", left " << left;
        left -= bytes;
      }
    }
    ReceivedPacket packet;
    while (inbox_[1]->receive(packet) == Inbox::Got::packet) inbox_[1]->release();
    EXPECT_TRUE(outbox_[0]->holds(in_parts_bytes)) << part << ": once all is taken";
  }
}

}  // namespace
}  // namespace haul::fabric::test
