// Both sides work at once, in one process and in two: the surrounding of every real program.
#include "sides.hpp"

#include <gtest/gtest.h>

#include "transfer.hpp"

namespace fabric_test {
namespace {

const std::size_t sides_sizes[] = {0,   1,          31,       32,           33,           192,
                                   kib, 4 * kib,    16 * kib, 64 * kib - 1, 64 * kib + 1, 200 * kib,
                                   mib, 4 * mib + 5};

class Sides : public testing::TestWithParam<Surrounding> {};

void exchange(Node& node, fi_addr_t peer, Kind kind, std::size_t size, std::uint64_t own_seed,
              std::uint64_t other_seed) {
  const auto sent = pattern(size, own_seed);
  std::vector<std::uint8_t> got(size);
  Op send_op, receive_op;
  ASSERT_EQ(receive(node, {.kind = kind, .tag = size}, got.data(), size, receive_op), 0);
  ASSERT_EQ(send(node, {.kind = kind, .to = peer, .tag = size}, sent.data(), size, send_op), 0);
  const Completion received = node.await(receive_op);
  ASSERT_EQ(received.err, 0) << fi_strerror(received.err);
  EXPECT_EQ(received.len, size);
  EXPECT_EQ(received.source, peer);
  ASSERT_EQ(difference(got.data(), pattern(size, other_seed)), "") << size << " bytes";
  ASSERT_EQ(node.await(send_op).err, 0);
}

TEST_P(Sides, both_send_and_receive_every_size) {
  const Wish wish{.caps = FI_MSG | FI_TAGGED | FI_SOURCE};
  if (!offered(wish)) GTEST_SKIP() << "not offered";
  const auto side = [&](std::uint64_t own, std::uint64_t other) {
    return [=](Node& node, fi_addr_t peer, Link&) {
      for (std::uint64_t round = 0; round < 5; ++round)
        for (const Kind kind : all_kinds)
          for (const std::size_t size : sides_sizes) {
            exchange(node, peer, kind, size, own + round, other + round);
            if (testing::Test::HasFatalFailure()) return;
          }
    };
  };
  run_sides(GetParam(), wish, side(100, 200), side(200, 100));
}

// Data in flight both ways, much of it: neither side may wait for the other to read first.
TEST_P(Sides, many_in_flight_both_ways) {
  const Wish wish{.caps = FI_TAGGED};
  if (!offered(wish)) GTEST_SKIP() << "not offered";
  const auto side = [](Node& node, fi_addr_t peer, Link&) {
    constexpr std::size_t count = 64, size = 300 * kib;
    const auto sent = pattern(size, 4);
    std::vector<Op> send_ops(count), receive_ops(count);
    std::vector<std::vector<std::uint8_t>> got(count, std::vector<std::uint8_t>(size));
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(send(node, {.to = peer, .tag = i}, sent.data(), size, send_ops[i]), 0);
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(receive(node, {.tag = i}, got[i].data(), size, receive_ops[i]), 0);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(node.await(receive_ops[i]).err, 0);
      ASSERT_EQ(node.await(send_ops[i]).err, 0);
      ASSERT_EQ(difference(got[i].data(), sent), "");
    }
  };
  run_sides(GetParam(), wish, side, side);
}

TEST_P(Sides, a_buffer_used_again_and_again) {
  const Wish wish{.caps = FI_TAGGED};
  if (!offered(wish)) GTEST_SKIP() << "not offered";
  constexpr std::size_t size = 2 * mib;
  constexpr std::uint64_t rounds = 150;
  run_sides(
      GetParam(), wish,
      [](Node& node, fi_addr_t peer, Link&) {
        std::vector<std::uint8_t> buffer(size);
        Op op;
        for (std::uint64_t round = 0; round < rounds; ++round) {
          buffer = pattern(size, round);
          ASSERT_EQ(send(node, {.to = peer}, buffer.data(), size, op), 0);
          ASSERT_EQ(node.await(op).err, 0);
        }
      },
      [](Node& node, fi_addr_t, Link&) {
        std::vector<std::uint8_t> buffer(size);
        Op op;
        for (std::uint64_t round = 0; round < rounds; ++round) {
          ASSERT_EQ(receive(node, {}, buffer.data(), size, op), 0);
          ASSERT_EQ(node.await(op).err, 0);
          ASSERT_EQ(difference(buffer.data(), pattern(size, round)), "") << "round " << round;
        }
      });
}

// Closing with everything still open must not crash, hang, or harm the other side.
TEST_P(Sides, closing_with_operations_outstanding) {
  const Wish wish{.caps = FI_TAGGED | FI_MSG};
  if (!offered(wish)) GTEST_SKIP() << "not offered";
  if (!provider_is_haul()) GTEST_SKIP() << "undefined elsewhere";
  static std::vector<std::uint8_t> large(mib), never(mib);
  static Op ops[3][20];
  run_sides(
      GetParam(), wish,
      [](Node& node, fi_addr_t peer, Link& link) {
        for (std::size_t i = 0; i < 20; ++i) {
          ASSERT_EQ(send(node, {.to = peer, .tag = 100 + i}, large.data(), large.size(), ops[0][i]),
                    0);
          ASSERT_EQ(receive(node, {.tag = 7}, never.data(), never.size(), ops[1][i]), 0);
        }
        link.meet();
        EXPECT_EQ(close_now(node.ep), 0);
        link.meet();
      },
      [](Node& node, fi_addr_t, Link& link) {
        std::vector<std::uint8_t> got(mib);
        for (std::size_t i = 0; i < 5; ++i)
          ASSERT_EQ(receive(node, {.tag = 100 + i}, got.data(), got.size(), ops[2][i]), 0);
        link.meet();
        link.meet();
        // Each ends well or with an error, and the endpoint goes on: with itself, say.
        for (std::size_t i = 0; i < 5; ++i) static_cast<void>(node.await(ops[2][i]));
        const fi_addr_t self = node.insert(node.name());
        Op send_op, receive_op;
        char sent = 1, received = 0;
        ASSERT_EQ(receive(node, {.tag = 1}, &received, 1, receive_op), 0);
        ASSERT_EQ(send(node, {.to = self, .tag = 1}, &sent, 1, send_op), 0);
        EXPECT_EQ(node.await(receive_op).err, 0);
        EXPECT_EQ(node.await(send_op).err, 0);
      });
}

INSTANTIATE_TEST_SUITE_P(Sides, Sides,
                         testing::Values(Surrounding::one_process, Surrounding::two_processes),
                         [](const testing::TestParamInfo<Surrounding>& which) {
                           return name_of(which.param);
                         });

}  // namespace
}  // namespace fabric_test
