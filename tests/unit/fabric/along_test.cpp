// Messages that are asked for, whose first bytes go along with the request.
#include <random>

#include "unit/fabric/harness.hpp"

namespace haul::fabric::test {
namespace {

class Along : public testing::Test {
 protected:
  static constexpr std::size_t kib = 1024, first_bytes = in_parts_bytes;

  // Sends, receives and compares; early: the receive is posted before.
  void exchange(std::size_t bytes, bool early, std::size_t room = SIZE_MAX) {
    SCOPED_TRACE(testing::Message() << bytes << " bytes, early " << early << ", room " << room);
    room = std::min(room, bytes);
    const auto data = pattern(bytes, ++seed_);
    std::vector<std::byte> got(room + 64, std::byte{0x55});
    int sent = 0, received = 0;
    if (early) {
      ASSERT_EQ(world_[1].receive(nullptr, got.data(), room, 9, &received), 0);
    }
    ASSERT_EQ(world_[0].send(world_[1], data.data(), bytes, 9, &sent), 0);
    went_along_ = is_in_cells(data.data());
    if (!early) {
      world_.settle();
      ASSERT_EQ(world_[1].receive(nullptr, got.data(), room, 9, &received), 0);
    }
    world_.settle();
    const CompletionNotice completion = world_[1].take(&received);
    EXPECT_EQ(completion.error, room < bytes ? FI_ETRUNC : 0);
    EXPECT_EQ(completion.length, room);
    EXPECT_EQ(world_[0].take(&sent).error, 0);
    EXPECT_TRUE(
        std::equal(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(room), data.begin()));
    EXPECT_EQ(got[room], std::byte{0x55});
    EXPECT_TRUE(world_[0].completions.empty());
    EXPECT_TRUE(world_[1].completions.empty());
    EXPECT_EQ(world_[0].network.lent, 0);
    EXPECT_TRUE(world_[0].matcher.flushed());
  }
  // Whether the message's first part lies in a cell, before the receiver has done anything.
  bool is_in_cells(const std::byte* data) {
    for (test::Node* node : {&world_[0], &world_[1]}) {
      for (auto& [number, channel] : node->network.outbound)
        for (const auto& cell : channel.segment->cells)
          if (std::memcmp(cell, data, 2 * kib) == 0) return true;
    }
    return false;
  }

  World world_{2};
  bool went_along_ = false;
  std::uint64_t seed_ = 0;
};

TEST_F(Along, AfterAMessageThatWasWantedInPieces) {
  exchange(200 * kib, true);
  EXPECT_FALSE(went_along_) << "nobody knows yet";
  for (const std::size_t bytes : {first_bytes + 1, 100 * kib, 300 * kib, 1024 * kib}) {
    exchange(bytes, true);
    EXPECT_TRUE(went_along_) << bytes;
  }
  exchange(1024 * kib + 1, true);
  EXPECT_FALSE(went_along_) << "it is so long that asking is little";
}

TEST_F(Along, WhatComesUnexpectedlyIsSentAgain) {
  exchange(200 * kib, true);
  for (const std::size_t bytes : {first_bytes + 1, 100 * kib, 300 * kib}) {
    exchange(bytes, false);
    EXPECT_TRUE(went_along_) << bytes;
  }
}

TEST_F(Along, AMessageThatIsCutEndsWhereItsReceiveDoes) {
  for (const std::size_t room :
       {std::size_t{0}, 1 * kib, first_bytes - 1, first_bytes, first_bytes + 1, 199 * kib}) {
    for (const bool early : {true, false}) {
      exchange(200 * kib, true);
      exchange(200 * kib, early, room);
      exchange(40 * kib, early);
    }
  }
}

TEST_F(Along, WhoCopiesDirectlyNeedsNoneAndGetsNoneTheNextTime) {
  exchange(200 * kib, true);
  world_[1].network.reach.pull = true;
  exchange(200 * kib, true);
  EXPECT_TRUE(went_along_);
  exchange(200 * kib, true);
  EXPECT_FALSE(went_along_);
  world_[1].network.reach.fail_after = world_[1].network.starts;
  exchange(200 * kib, true);
  exchange(200 * kib, true);
  EXPECT_TRUE(went_along_) << "it was wanted in pieces after all";
}

TEST_F(Along, ManyAtOnceInBothDirectionsArriveInOrder) {
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    constexpr unsigned many = 8;
    std::vector<std::vector<std::byte>> data[2], got[2];
    std::vector<int> sent[2], received[2];
    for (unsigned side : {0u, 1u}) {
      data[side].resize(many), got[side].resize(many), sent[side].resize(many),
          received[side].resize(many);
    }
    for (unsigned i = 0; i < many; ++i) {
      for (unsigned side : {0u, 1u}) {
        const std::size_t bytes = random() % 3 == 0 ? random() % 4'000 : random() % 400'000;
        data[side][i] = pattern(bytes, ++seed_);
        got[side][i].resize(bytes);
        const auto post = [&] {
          return world_[1 - side].receive(&world_[side], got[side][i].data(), bytes, i,
                                          &received[side][i]);
        };
        const bool early = random() % 2 == 0;
        if (early) {
          ASSERT_EQ(post(), 0);
        }
        ASSERT_EQ(
            world_[side].send(world_[1 - side], data[side][i].data(), bytes, i, &sent[side][i]), 0);
        if (random() % 2 == 0) world_[random() % 2].matcher.progress();
        if (!early) {
          ASSERT_EQ(post(), 0);
        }
      }
    }
    world_.settle();
    for (unsigned i = 0; i < many; ++i) {
      for (unsigned side : {0u, 1u}) {
        EXPECT_EQ(world_[1 - side].take(&received[side][i]).error, 0);
        EXPECT_EQ(world_[side].take(&sent[side][i]).error, 0);
        ASSERT_EQ(got[side][i], data[side][i]) << round << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace haul::fabric::test
