// Messages whose bytes a device moves, in place of both sides' CPUs.
#include <gtest/gtest.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <vector>

#include "sizes.hpp"
#include "unit/fabric/harness.hpp"

using namespace haul::fabric;
using namespace haul::fabric::test;

namespace {

// Two nodes whose memory both map, and the receiver's device.
class DeviceMessages : public testing::Test {
 protected:
  DeviceMessages() {
    world[0].network.reach = world[1].network.reach =
        Reachability{.pull = true, .push = true, .arena = true, .mapped_only = true};
    reach().device = true;
  }
  Reachability& reach() { return world[1].network.reach; }
  void begin(std::size_t room = 300 * kib) {
    got.resize(room);
    ASSERT_EQ(world[1].receive(nullptr, got.data(), room, 1, &received), 0);
    ASSERT_EQ(world[0].send(world[1], data.data(), data.size(), 1, &sent), 0);
  }

  World world{2};
  const std::vector<std::byte> data = pattern(300 * kib, 1);
  std::vector<std::byte> got;
  int sent = 0, received = 0;
};

TEST_F(DeviceMessages, AreItsAlone) {
  begin();
  world.settle();
  EXPECT_EQ(world[1].take(&received).error, 0);
  EXPECT_EQ(world[0].take(&sent).error, 0);
  EXPECT_TRUE(data == got);
  EXPECT_EQ(world[1].network.offloads, 1u);
  EXPECT_EQ(world[0].network.starts + world[1].network.starts, 0u);
  EXPECT_TRUE(world[1].matcher.idle());
}

// The device has been measured: nothing is tried against it.
TEST_F(DeviceMessages, AreNotPutOnTrial) {
  reach().ways = reach().mapped_ways =
      MessageWays(MessageWay::direct, {MessageWay::pieces, MessageWay::streamed});
  constexpr unsigned many = 200;
  for (unsigned i = 0; i < many; ++i) {
    begin();
    world.settle();
    ASSERT_EQ(world[1].take(&received).error, 0);
    ASSERT_EQ(world[0].take(&sent).error, 0);
    ASSERT_TRUE(data == got);
  }
  EXPECT_EQ(world[1].network.offloads, many);
  EXPECT_EQ(world[0].network.starts + world[1].network.starts, 0u);
}

TEST_F(DeviceMessages, ThatAreCutShortCostItNoMore) {
  begin(200 * kib);
  world.settle();
  EXPECT_EQ(world[1].take(&received).error, FI_ETRUNC);
  EXPECT_EQ(world[0].take(&sent).error, 0);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), data.begin()));
}

TEST_F(DeviceMessages, ComeAsPiecesWhereItFails) {
  reach().device_fails = true;
  begin();
  world.settle();
  EXPECT_EQ(world[1].take(&received).error, 0);
  EXPECT_EQ(world[0].take(&sent).error, 0);
  EXPECT_TRUE(data == got);
  EXPECT_EQ(world[1].matcher.statistics().fallbacks.load(), 1u);
}

// What it has is waited for, though the sender is gone: it may still write there.
TEST_F(DeviceMessages, OutliveTheirSender) {
  reach().delay = 50;
  begin();
  for (int i = 0; i < 10; ++i) world[static_cast<std::size_t>(i) % 2].matcher.progress();
  ASSERT_EQ(world[1].network.offloads, 1u);
  world.kill(0);
  world[1].matcher.progress();
  EXPECT_EQ(world[1].take(&received).error, -1);
  for (int i = 0; i < 100; ++i) world[1].matcher.progress();
  EXPECT_EQ(world[1].take(&received).error, FI_ECONNRESET);
}

TEST_F(DeviceMessages, TellHowLongTheyTakeWhereNothingElseIsUnderWay) {
  EXPECT_EQ(world[1].matcher.left_ns(), 0u);
  reach().delay = 50;
  begin();
  for (int i = 0; i < 10; ++i) world[static_cast<std::size_t>(i) % 2].matcher.progress();
  const std::uint64_t left = world[1].matcher.left_ns();
  EXPECT_GT(left, 0u);
  EXPECT_LE(left, 50'000u);
  EXPECT_FALSE(world[1].matcher.idle());
  // Another copy, by the CPU, must go on.
  reach().device = false;
  std::vector<std::byte> other(300 * kib);
  ASSERT_EQ(world[1].receive(nullptr, other.data(), other.size(), 2, nullptr), 0);
  ASSERT_EQ(world[0].send(world[1], data.data(), data.size(), 2, nullptr), 0);
  for (int i = 0; i < 3; ++i) world[static_cast<std::size_t>(i) % 2].matcher.progress();
  EXPECT_EQ(world[1].matcher.left_ns(), 0u);
  world.settle();
  for (int i = 0; i < 100; ++i) world[1].matcher.progress();
  EXPECT_TRUE(data == got && data == other);
}

}  // namespace
