// Senders that copy into their receivers' memory, and receives that outlive what comes into them.
#include <gtest/gtest.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstring>
#include <vector>

#include "fabric/protocol/trial.hpp"
#include "sizes.hpp"
#include "unit/fabric/harness.hpp"

using namespace haul::fabric;
using namespace haul::fabric::test;

namespace {

TEST(Push, IntoMemoryThatTheSenderMapsOneCopyIsMadeByTheSender) {
  World world(2);
  world[0].network.reach = world[1].network.reach = Reachability{.push = true, .mapped_only = true};
  world[1].network.reach.arena = true;
  const auto data = pattern(2100 * kib, 1);
  std::vector<std::byte> got(2100 * kib);
  int sent = 0, received = 0;
  ASSERT_EQ(world[1].receive(nullptr, got.data(), got.size(), 1, &received), 0);
  ASSERT_EQ(world[0].send(world[1], data.data(), data.size(), 1, &sent), 0);
  world.settle();
  EXPECT_EQ(world[1].take(&received).error, 0);
  EXPECT_EQ(world[0].take(&sent).error, 0);
  EXPECT_TRUE(data == got);
  EXPECT_EQ(world[0].network.starts, 5u);
  EXPECT_EQ(world[1].network.starts, 0u);
  const auto path = static_cast<std::size_t>(Path::mapped);
  EXPECT_EQ(world[1].matcher.statistics().sent_messages[path].load(), 1u);
}

TEST(Push, MemoryThatCanBeMappedIsAskedForUnlessItIsInjected) {
  for (const std::uint64_t inject : {std::uint64_t{0}, std::uint64_t{FI_INJECT}}) {
    World world(2, {}, 64 * kib);
    world[0].network.reach = world[1].network.reach =
        Reachability{.pull = true, .claims = false, .arena = true, .mapped_only = true};
    for (const std::size_t bytes : {3 * kib, 16 * kib, 16 * kib + 1, 32 * kib}) {
      world[1].network.starts = 0;
      const auto data = pattern(bytes, 1);
      std::vector<std::byte> got(bytes);
      int sent = 0, received = 0;
      ASSERT_EQ(world[1].receive(nullptr, got.data(), got.size(), 1, &received), 0);
      ASSERT_EQ(world[0].send(world[1], data.data(), bytes, 1, &sent, FI_COMPLETION | inject), 0);
      world.settle();
      EXPECT_EQ(world[1].take(&received).error, 0);
      EXPECT_EQ(world[0].take(&sent).error, 0);
      EXPECT_TRUE(data == got);
      EXPECT_EQ(world[1].network.starts, inject == 0 && bytes > 16 * kib ? 1u : 0u) << bytes;
    }
  }
}

// What is asked for because it can be mapped goes unasked where that turns out to be slow, and is
// asked for again where it is fast.
TEST(Push, WhetherToAskIsFoundOutByTrying) {
  constexpr std::size_t bytes = 32 * kib;
  World world(2, {}, 64 * kib);
  world[0].network.reach = world[1].network.reach =
      Reachability{.pull = true, .claims = false, .arena = true, .mapped_only = true};
  const auto data = pattern(bytes, 1);
  std::vector<std::byte> got(bytes);
  const auto unasked_of = [&](unsigned messages) {
    const auto path = static_cast<std::size_t>(Path::eager);
    const std::uint64_t before = world[0].matcher.statistics().sent_messages[path].load();
    for (unsigned i = 0; i < messages; ++i) {
      int sent = 0, received = 0;
      std::memset(got.data(), 0, bytes);
      EXPECT_EQ(world[1].receive(nullptr, got.data(), got.size(), 1, &received), 0);
      EXPECT_EQ(world[0].send(world[1], data.data(), bytes, 1, &sent), 0);
      for (unsigned turn = 0; world[0].completions.size() + world[1].completions.size() != 2;
           ++turn)
        if (!world[turn % 2].matcher.progress() && turn > 1'000'000) break;
      if (world[1].take(&received).error != 0 || world[0].take(&sent).error != 0 || data != got) {
        ADD_FAILURE() << "message " << i;
        break;
      }
    }
    return world[0].matcher.statistics().sent_messages[path].load() - before;
  };
  EXPECT_EQ(unasked_of(Trial::usual_interval / 2), 0u) << "asked for until something is learned";
  world[1].network.reach.delay = 20'000;  // copies are ready after so many looks
  unasked_of(4 * Trial::usual_interval);
  EXPECT_GE(unasked_of(100), 80u);
}

// Who waits for its copy to end leaves the CPU to the mover that makes it, and gives up in the end.
TEST(Push, ToAPeerThatDiesIsWaitedForWithPauses) {
  World world(2);
  world[0].network.reach = world[1].network.reach =
      Reachability{.push = true, .delay = ~0u, .mapped_only = true};
  world[1].network.reach.arena = true;
  std::vector<std::byte> data(300 * kib), got(300 * kib);
  int sent = 0;
  ASSERT_EQ(world[1].receive(nullptr, got.data(), got.size(), 1, nullptr), 0);
  ASSERT_EQ(world[0].send(world[1], data.data(), data.size(), 1, &sent), 0);
  for (int i = 0; i < 10; ++i) world[static_cast<std::size_t>(i) % 2].matcher.progress();
  ASSERT_NE(world[0].network.starts, 0u);
  world.kill(1);
  world[0].network.tests = 0;
  world[0].matcher.progress();
  EXPECT_EQ(world[0].take(&sent).error, FI_ECONNRESET);
  // At most a thousand spins, a hundred yields, and the naps of two seconds.
  EXPECT_LT(world[0].network.tests, 10'000u);
}

// A peer that asks for a share of a message twice.
TEST(Push, AskedForTwiceEndsTheExchange) {
  World world(2);
  world[1].network.reach = Reachability{.push = true, .delay = 100};
  std::vector<std::byte> data(400 * kib), memory(400 * kib);
  int sent = 0;
  ASSERT_EQ(world[0].send(world[1], "", 0, 99, nullptr, 0), 0);  // makes the ring
  ASSERT_EQ(world[1].send(world[0], data.data(), data.size(), 1, &sent), 0);
  world[1].matcher.progress();
  ReceivedPacket request;
  ASSERT_EQ(world[1].network.outbound[1].inbox->receive(request), Inbox::Got::packet);
  ASSERT_EQ(request.header.kind, PacketKind::request);
  Outbox& outbox = *world[0].network.outbound[2].outbox;
  for (int i = 0; i < 2; ++i) {
    const Outbox::Slot slot = outbox.reserve(0, Outbox::Lane::control);
    ASSERT_NE(slot.header, nullptr);
    Header clear;
    clear.kind = PacketKind::clear;
    clear.flags = packet_split;
    clear.detail = 16;
    clear.tag = request.header.far.token;
    clear.far.length = memory.size();
    clear.far.token = 1;
    clear.far.place.address = reinterpret_cast<std::uintptr_t>(memory.data());
    clear.far.place.pieces = 1;
    std::memcpy(static_cast<void*>(slot.header), &clear, offsetof(Header, ready));
    outbox.commit();
  }
  for (int i = 0; i < 10; ++i) world[1].matcher.progress();
  EXPECT_EQ(world[1].take(&sent).error, FI_EIO);
}

// Its buffer is the program's again when the last message into it has ended, whoever ends it.
TEST(MultiReceive, OfADeadPeerEndsAfterTheCopyIntoIt) {
  for (const bool cancelled : {false, true}) {
    World world(2);
    world[1].network.reach = Reachability{.pull = true, .claims = false, .delay = 200};
    std::vector<std::byte> buffer(900 * kib), data(300 * kib);
    int context = 0;
    const iovec piece{buffer.data(), buffer.size()}, from{data.data(), data.size()};
    ReceiveRequest request;
    request.pieces = &piece;
    request.count = 1;
    request.flags = FI_COMPLETION | FI_MULTI_RECV;
    request.context = &context;
    ASSERT_EQ(world[1].matcher.receive(&world[1].peer(world[0]), request), 0);
    SendRequest message;
    message.pieces = &from;
    message.count = 1;
    ASSERT_EQ(world[0].matcher.send(world[0].peer(world[1]), message), 0);
    for (int i = 0; i < 6; ++i) world[static_cast<std::size_t>(i) % 2].matcher.progress();
    ASSERT_EQ(world[1].network.starts, 1u);
    if (cancelled) {
      EXPECT_EQ(world[1].matcher.cancel(&context), 0);
      EXPECT_EQ(world[1].matcher.cancel(&context), -FI_ENOENT);
    } else {
      world.kill(0);
    }
    for (int i = 0; i < 50; ++i) world[1].matcher.progress();
    EXPECT_TRUE(world[1].completions.empty()) << "the buffer may still be written";
    for (int i = 0; i < 2000; ++i) world[1].matcher.progress();
    ASSERT_EQ(world[1].completions.size(), 2u);
    EXPECT_EQ(world[1].completions[0].error, cancelled ? 0 : FI_ECONNRESET);
    EXPECT_EQ(world[1].completions[0].flags & FI_MULTI_RECV, 0u);
    EXPECT_EQ(world[1].completions[1].error, cancelled ? FI_ECANCELED : FI_ECONNRESET);
    EXPECT_NE(world[1].completions[1].flags & FI_MULTI_RECV, 0u);
  }
}

}  // namespace
