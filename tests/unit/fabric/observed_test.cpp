// What a matcher tells of large messages while somebody observes: how they came, and whose memory
// was not mapped.
#include <gtest/gtest.h>
#include <rdma/fi_endpoint.h>

#include <vector>

#include "sizes.hpp"
#include "unit/fabric/harness.hpp"

using namespace haul::fabric;
using namespace haul::fabric::test;

namespace {

class Observed : public testing::Test {
 protected:
  explicit Observed(std::size_t eager = eager_limit) : world(2, {}, eager) {
    sender.observed = receiver.observed = true;
  }
  void reach(const Reachability& both) { sender.reach = receiver.reach = both; }
  // A message of this length, and its receive.
  void exchange(std::size_t bytes) {
    data = pattern(bytes, 1);
    got.assign(bytes, std::byte{0});
    ASSERT_EQ(world[1].receive(nullptr, got.data(), bytes, 1, &got), 0);
    ASSERT_EQ(world[0].send(world[1], data.data(), bytes, 1, &data), 0);
    world.settle();
    EXPECT_EQ(world[1].take(&got).error, 0);
    EXPECT_EQ(world[0].take(&data).error, 0);
    ASSERT_TRUE(data == got);
  }
  // One message was told of, by the receiver.
  void expect_arrival(Path path, std::size_t bytes) {
    ASSERT_EQ(receiver.arrivals.size(), 1u);
    EXPECT_EQ(receiver.arrivals[0].path, path);
    EXPECT_EQ(receiver.arrivals[0].bytes, bytes);
    EXPECT_NE(receiver.arrivals[0].taken_ns, 0u);
    EXPECT_TRUE(sender.arrivals.empty());
  }
  // Both sides told of their buffer.
  void expect_both_unmapped(std::size_t bytes) {
    ASSERT_EQ(sender.unmapped.size(), 1u);
    EXPECT_EQ(sender.unmapped[0].at, data.data());
    EXPECT_TRUE(sender.unmapped[0].sent);
    ASSERT_EQ(receiver.unmapped.size(), 1u);
    EXPECT_EQ(receiver.unmapped[0].at, got.data());
    EXPECT_FALSE(receiver.unmapped[0].sent);
    EXPECT_EQ(sender.unmapped[0].bytes, bytes);
    EXPECT_EQ(receiver.unmapped[0].bytes, bytes);
  }
  void expect_none_unmapped() {
    EXPECT_TRUE(sender.unmapped.empty());
    EXPECT_TRUE(receiver.unmapped.empty());
  }

  World world;
  TestNetwork& sender = world[0].network;
  TestNetwork& receiver = world[1].network;
  std::vector<std::byte> data, got;
};

TEST_F(Observed, PiecesComeFromMemoryThatNobodyMaps) {
  exchange(300 * kib);
  expect_arrival(Path::ring, 300 * kib);
  expect_both_unmapped(300 * kib);
}

TEST_F(Observed, NothingIsToldOfSmallOnesNorWhereNobodyObserves) {
  exchange(64 * kib - 1);
  exchange(100);
  EXPECT_TRUE(receiver.arrivals.empty());
  expect_none_unmapped();
  sender.observed = receiver.observed = false;
  exchange(300 * kib);
  EXPECT_TRUE(receiver.arrivals.empty());
  expect_none_unmapped();
}

TEST_F(Observed, TheReceiverMapsTheSenders) {
  reach({.pull = true, .claims = false, .arena = true});
  exchange(300 * kib);
  expect_arrival(Path::mapped, 300 * kib);
  expect_none_unmapped();
}

// Pieces may be sooner where the bytes could be mapped: that is no buffer's fault.
TEST_F(Observed, PiecesThatWereChosenBlameNobody) {
  reach({.pull = true, .push = true, .arena = true});
  receiver.reach.ways = receiver.reach.mapped_ways =
      MessageWays(MessageWay::pieces, {MessageWay::direct});
  for (const bool by_sender : {false, true}) {
    if (by_sender) {
      sender.reach.arena = false;
      receiver.reach.mapped_only = true;
    }
    exchange(300 * kib);
    expect_arrival(Path::ring, 300 * kib);
    expect_none_unmapped();
    receiver.arrivals.clear();
  }
}

TEST_F(Observed, BothCopyAShareThroughMappings) {
  reach({.pull = true, .push = true, .arena = true});
  exchange(300 * kib);
  expect_arrival(Path::mapped, 300 * kib);
  expect_none_unmapped();
}

TEST_F(Observed, TheSenderMapsTheReceivers) {
  reach({.push = true, .mapped_only = true});
  receiver.reach.arena = true;
  exchange(300 * kib);
  expect_arrival(Path::mapped, 300 * kib);
  expect_none_unmapped();
}

TEST_F(Observed, TheKernelCopiesSmallPages) {
  for (const bool shares : {false, true}) {
    reach({.pull = true, .push = shares, .claims = shares});
    exchange(300 * kib);
    expect_arrival(Path::cma, 300 * kib);
    expect_both_unmapped(300 * kib);
    for (TestNetwork* network : {&sender, &receiver}) {
      network->arrivals.clear();
      network->unmapped.clear();
    }
  }
}

TEST_F(Observed, HugePagesNeedNoMapping) {
  reach({.pull = true, .claims = false, .huge = true});
  exchange(300 * kib);
  expect_arrival(Path::cma, 300 * kib);
  expect_none_unmapped();
}

TEST_F(Observed, WhatIsRefusedHalfWayCameAsPieces) {
  reach({.pull = true, .claims = false, .fail_after = 1});
  exchange(300 * kib);
  expect_arrival(Path::ring, 300 * kib);
  expect_both_unmapped(300 * kib);
}

class ObservedUnasked : public Observed {
 protected:
  ObservedUnasked() : Observed(64 * kib) {}
};

TEST_F(ObservedUnasked, IsToldOfByTheSenderWithoutATime) {
  exchange(64 * kib);
  EXPECT_TRUE(receiver.arrivals.empty());
  ASSERT_EQ(sender.arrivals.size(), 1u);
  EXPECT_EQ(sender.arrivals[0].path, Path::eager);
  EXPECT_EQ(sender.arrivals[0].bytes, 64 * kib);
  EXPECT_EQ(sender.arrivals[0].taken_ns, 0u);
  ASSERT_EQ(sender.unmapped.size(), 1u);
  EXPECT_EQ(sender.unmapped[0].at, data.data());
  EXPECT_TRUE(receiver.unmapped.empty());
}

}  // namespace
