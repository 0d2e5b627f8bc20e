// Peers that die, flood, write garbage; full queues.
#include <algorithm>
#include <random>

#include "fabric/protocol/packet.hpp"
#include "harness.hpp"
#include "sizes.hpp"

namespace haul::fabric::test {
namespace {

TEST(Death, EverythingThatNamesThePeerFailsAndTheRestGoesOn) {
  World world(3);
  std::vector<std::byte> large(300 * kib), got(300 * kib);
  int from_dead = 0, any = 0, to_dead = 0, write = 0, from_alive = 0;
  ASSERT_EQ(world[0].receive(&world[1], got.data(), got.size(), 1, &from_dead), 0);
  ASSERT_EQ(world[0].receive(nullptr, got.data(), got.size(), 2, &any), 0);
  ASSERT_EQ(world[0].receive(&world[2], got.data(), got.size(), 3, &from_alive), 0);
  ASSERT_EQ(world[0].send(world[1], large.data(), large.size(), 1, &to_dead), 0);
  ASSERT_EQ(world[0].send(world[2], "x", 1, 9, nullptr, 0), 0);
  const iovec piece{large.data(), large.size()};
  const fi_rma_iov target{0, large.size(), 7};
  RmaRequest request;
  request.is_write = true;
  request.pieces = &piece;
  request.count = 1;
  request.targets = &target;
  request.target_count = 1;
  request.flags = FI_COMPLETION;
  request.context = &write;
  ASSERT_EQ(world[0].matcher.rma(world[0].peer(world[1]), request), 0);
  world[1].matcher.progress();
  // What it sent before it died still arrives.
  int last = 0;
  char word[8] = {};
  ASSERT_EQ(world[0].receive(&world[1], word, 8, 4, &last), 0);
  ASSERT_EQ(world[1].send(world[0], "bye", 4, 4, nullptr, 0), 0);
  world[1].matcher.progress();
  world.kill(1);
  world[0].matcher.progress();
  EXPECT_EQ(world[0].take(&last).error, 0);
  EXPECT_STREQ(word, "bye");
  EXPECT_EQ(world[0].take(&from_dead).error, FI_ECONNRESET);
  EXPECT_EQ(world[0].take(&to_dead).error, FI_ECONNRESET);
  EXPECT_EQ(world[0].take(&write).error, FI_ECONNRESET);
  EXPECT_EQ(world[0].take(&any).error, -1);  // another may still send
  EXPECT_EQ(world[0].take(&from_alive).error, -1);
  EXPECT_LT(world[0].send(world[1], "x", 1, 1, nullptr), 0);
  EXPECT_LT(world[0].receive(&world[1], word, 8, 4, &last), 0);
  world.kill(2);
  world[0].matcher.progress();
  EXPECT_EQ(world[0].take(&any).error, FI_ECONNRESET);  // nobody is left
  EXPECT_EQ(world[0].take(&from_alive).error, FI_ECONNRESET);
}

// News of a peer's end that come while its packets are read: answering it is the first contact.
TEST(Death, WhileItsLastPacketsAreHeard) {
  World world(2);
  std::vector<std::byte> data(20 * kib), got(20 * kib);
  int received = 0;
  ASSERT_EQ(world[1].receive(nullptr, got.data(), got.size(), 1, &received), 0);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(world[0].send(world[1], data.data(), data.size(), 1, nullptr), 0);
  }
  world.kill(0);
  world[1].matcher.progress();
  EXPECT_EQ(world[1].take(&received).error, FI_ECONNRESET);
  EXPECT_TRUE(world[1].network.dropped);
  world.settle();
}

// What a peer wanted to write is nothing that the target has asked for.
TEST(Death, OfAWriterIsNoFailureOfItsTarget) {
  World world(2);
  std::vector<std::byte> data(300 * kib);
  const iovec piece{data.data(), data.size()};
  const fi_rma_iov target{0, data.size(), 7};
  RmaRequest request;
  request.is_write = true;
  request.pieces = &piece;
  request.count = 1;
  request.targets = &target;
  request.target_count = 1;
  ASSERT_EQ(world[0].matcher.rma(world[0].peer(world[1]), request), 0);
  world[1].matcher.progress();
  world.kill(0);
  world[1].matcher.progress();
  EXPECT_TRUE(world[1].completions.empty());
}

// At every step of a large message.
TEST(Death, AtEveryStepOfATransfer) {
  for (const bool direct : {false, true}) {
    for (const std::size_t dying : {std::size_t{0}, std::size_t{1}}) {
      for (int steps = 0; steps < 12; ++steps) {
        World world(2);
        if (direct) {
          world[0].network.reach = world[1].network.reach =
              Reachability{.pull = true, .push = true, .delay = 2};
        }
        std::vector<std::byte> data(400 * kib), got(400 * kib);
        int sent = 0, received = 0;
        ASSERT_EQ(world[1].receive(&world[0], got.data(), got.size(), 1, &received), 0);
        ASSERT_EQ(world[0].send(world[1], data.data(), data.size(), 1, &sent), 0);
        for (int i = 0; i < steps; ++i) world[static_cast<std::size_t>(i) % 2].matcher.progress();
        world.kill(dying);
        const std::size_t left = 1 - dying;
        for (int i = 0; i < 50; ++i) world[left].matcher.progress();
        ASSERT_NE(world[left].take(left == 0 ? &sent : &received).error, -1) << steps;
        if (left == 0) {
          ASSERT_EQ(world[0].network.lent, 0) << steps;
        }
      }
    }
  }
}

TEST(Death, DuringACopyGivesItsMemoryBackWhenTheCopyIsOver) {
  World world(2);
  world[1].network.reach = Reachability{.pull = true, .claims = false, .delay = 200};
  std::vector<std::byte> data(400 * kib), got(400 * kib);
  int sent = 0, received = 0;
  ASSERT_EQ(world[1].receive(&world[0], got.data(), got.size(), 1, &received), 0);
  ASSERT_EQ(world[0].send(world[1], data.data(), data.size(), 1, &sent), 0);
  for (int i = 0; i < 6; ++i) world[static_cast<std::size_t>(i) % 2].matcher.progress();
  ASSERT_EQ(world[1].network.starts, 1u);
  world.kill(0);
  for (int i = 0; i < 100; ++i) world[1].matcher.progress();
  EXPECT_EQ(world[1].take(&received).error, -1) << "it may still be written";
  for (int i = 0; i < 200; ++i) world[1].matcher.progress();
  EXPECT_EQ(world[1].take(&received).error, FI_ECONNRESET);
  EXPECT_EQ(world[1].network.starts, 1u);
  EXPECT_EQ(world[1].matcher.statistics().copies_in_flight.load(), 0u);
}

// ---- messages in parts, whose reader comes in between ----

class Parts : public testing::Test {
 protected:
  Parts() : world_(2), data_(pattern(5000, 9)), got_(6000) {
    EXPECT_EQ(world_[0].send(world_[1], "", 0, 99, nullptr, 0), 0);  // makes the ring
    outbox_ = world_[0].network.outbound[2].outbox.get();
  }
  void send_part(std::size_t offset, std::size_t bytes, std::size_t said = 5000) {
    const Outbox::Slot slot = outbox_->reserve(bytes, Outbox::Lane::eager);
    ASSERT_NE(slot.header, nullptr);
    Header header;
    header.kind = offset == 0 ? PacketKind::message : PacketKind::more;
    header.flags = packet_tagged | packet_parts;
    header.payload = static_cast<std::uint32_t>(bytes);
    header.tag = 4;
    header.far.length = said;
    std::memcpy(static_cast<void*>(slot.header), &header, offsetof(Header, ready));
    std::memcpy(slot.payload, data_.data() + offset, bytes);
    outbox_->commit();
    world_[1].matcher.progress();
  }
  void post(std::size_t room) {
    ASSERT_EQ(world_[1].receive(nullptr, got_.data(), room, 4, this), 0);
  }

  World world_;
  std::vector<std::byte> data_, got_;
  RingOutbox* outbox_ = nullptr;
};

TEST_F(Parts, AreOneMessageWheneverItsReceiveComes) {
  for (int before = 0; before <= 3; ++before) {
    const std::size_t ends[] = {2000, 4000, 5000};
    std::size_t offset = 0;
    for (int part = 0; part < 3; ++part) {
      if (part == before) post(6000);
      send_part(offset, ends[part] - offset);
      offset = ends[part];
    }
    if (before == 3) post(6000);
    const CompletionNotice completion = world_[1].take(this);
    ASSERT_EQ(completion.error, 0) << before;
    EXPECT_EQ(completion.length, 5000u);
    EXPECT_TRUE(std::equal(data_.begin(), data_.end(), got_.begin()));
    EXPECT_EQ(world_[1].matcher.statistics().unexpected_bytes.load(), 0u);
  }
}

TEST_F(Parts, AreCutAndDiscardedInTheMiddle) {
  send_part(0, 2000);
  post(3000);
  send_part(2000, 3000);
  const CompletionNotice cut = world_[1].take(this);
  EXPECT_EQ(cut.error, FI_ETRUNC);
  EXPECT_EQ(cut.overflow, 2000u);
  send_part(0, 2000);
  ASSERT_EQ(
      world_[1].receive(nullptr, nullptr, 0, 4, this, 0, FI_COMPLETION | FI_PEEK | FI_DISCARD), 0);
  EXPECT_EQ(world_[1].take(this).length, 5000u);
  send_part(2000, 3000);
  post(6000);
  EXPECT_EQ(world_[1].take(this).error, -1);
  send_part(0, 4999);
  send_part(4999, 1);
  EXPECT_EQ(world_[1].take(this).error, 0);
}

TEST_F(Parts, DieWithTheirSender) {
  post(6000);
  send_part(0, 2000);
  world_.kill(0);
  world_[1].matcher.progress();
  EXPECT_EQ(world_[1].take(this).error, FI_ECONNRESET);
}

TEST_F(Parts, OfADeadSenderAreNotWaitedFor) {
  send_part(0, 2000);
  world_.kill(0);
  world_[1].matcher.progress();
  post(6000);
  EXPECT_EQ(world_[1].take(this).error, FI_ECONNRESET);
}

TEST_F(Parts, ThatDoNotFitTogetherEndTheExchange) {
  post(6000);
  send_part(0, 2000);
  send_part(2000, 3000, 5000);
  EXPECT_EQ(world_[1].take(this).error, 0);
  send_part(1, 10);  // more, of nothing
  EXPECT_LT(world_[1].send(world_[0], "x", 1, 1, nullptr), 0);
}

TEST_F(Parts, OfAMessageThatIsTooShortForThem) {
  send_part(0, 10, 20);
  send_part(10, 10, 20);
  EXPECT_LT(world_[1].send(world_[0], "x", 1, 1, nullptr), 0);
}

TEST(Flood, UnexpectedMessagesStayWithinTheirMemory) {
  MatcherLimits limits;
  limits.unexpected_bytes = 256 * kib;
  World world(2, limits);
  const auto data = pattern(1000, 6);
  unsigned taken = 0;
  // Until the sender is held back.
  for (int i = 0; i < 20000; ++i) {
    const ssize_t result = world[0].send(world[1], data.data(), data.size(), 1, nullptr, FI_INJECT);
    if (result == -FI_EAGAIN) break;
    ASSERT_EQ(result, 0);
    ++taken;
    world.settle();
    ASSERT_LE(world[1].matcher.statistics().unexpected_bytes.load(), 512 * kib);
  }
  EXPECT_GT(taken, 1000u);
  // All arrive, in order, and afterwards it sends eagerly again.
  std::vector<std::byte> got(1000);
  for (unsigned i = 0; i < taken; ++i) {
    ASSERT_EQ(world[1].receive(nullptr, got.data(), got.size(), 1, &got), 0);
    world.settle();
    ASSERT_EQ(world[1].take(&got).error, 0) << i;
    ASSERT_EQ(got, data);
  }
  EXPECT_EQ(world[1].matcher.statistics().unexpected_bytes.load(), 0u);
  const auto eager = [&] {
    return world[0].matcher.statistics().sent_messages[static_cast<int>(Path::eager)].load();
  };
  const std::uint64_t before = eager();
  ASSERT_EQ(world[1].receive(nullptr, got.data(), got.size(), 1, &got), 0);
  ASSERT_EQ(world[0].send(world[1], data.data(), data.size(), 1, nullptr, FI_INJECT), 0);
  world.settle();
  EXPECT_EQ(eager(), before + 1);
}

TEST(Flood, ALargeMessageDoesNotHoldUpSmallOnes) {
  World world(3);
  std::vector<std::byte> large(900 * kib), got(900 * kib);
  int big = 0, small = 0, other = 0;
  char a[4], b[4];
  ASSERT_EQ(world[1].receive(&world[0], got.data(), got.size(), 1, &big), 0);
  ASSERT_EQ(world[1].receive(&world[0], a, 4, 2, &small), 0);
  ASSERT_EQ(world[2].receive(&world[0], b, 4, 2, &other), 0);
  ASSERT_EQ(world[0].send(world[1], large.data(), large.size(), 1, nullptr), 0);
  world[1].matcher.progress();  // asks for it
  world[0].matcher.progress();  // sends what has room
  ASSERT_EQ(world[0].send(world[1], "now", 4, 2, nullptr), 0);
  ASSERT_EQ(world[0].send(world[2], "now", 4, 2, nullptr), 0);
  world[1].matcher.progress();
  world[2].matcher.progress();
  EXPECT_EQ(world[1].take(&small).error, 0);
  EXPECT_EQ(world[2].take(&other).error, 0);
  EXPECT_EQ(world[1].take(&big).error, -1);
  world.settle();
  EXPECT_EQ(world[1].take(&big).error, 0);
}

TEST(Order, AFenceWaitsForWhatIsUnanswered) {
  World world(2);
  std::vector<std::byte> data(100 * kib);
  int first = 0, second = 0;
  char word[4];
  ASSERT_EQ(world[1].receive(nullptr, word, 4, 2, &second), 0);
  ASSERT_EQ(world[0].send(world[1], data.data(), data.size(), 1, &first), 0);  // no receive yet
  ASSERT_EQ(world[0].send(world[1], "abc", 4, 2, &second, FI_COMPLETION | FI_FENCE), 0);
  world.settle();
  EXPECT_EQ(world[1].take(&second).error, -1);
  std::vector<std::byte> got(100 * kib);
  ASSERT_EQ(world[1].receive(nullptr, got.data(), got.size(), 1, &first), 0);
  world.settle();
  EXPECT_EQ(world[1].take(&first).error, 0);
  EXPECT_EQ(world[1].take(&second).error, 0);
}

TEST(Full, ACompletionQueueWithoutRoomRefusesRequests) {
  World world(2);
  char word[4] = {};
  world[0].full = true;
  EXPECT_EQ(world[0].send(world[1], word, 4, 1, nullptr), -FI_EAGAIN);
  EXPECT_EQ(world[0].receive(&world[1], word, 4, 1, nullptr), -FI_EAGAIN);
  world[0].full = false;
  EXPECT_EQ(world[0].send(world[1], word, 4, 1, nullptr), 0);
}

TEST(Full, MoreOperationsThanThereAreWaitForRoom) {
  MatcherLimits limits;
  limits.operations = 16;
  World world(2, limits);
  std::vector<std::byte> data(20 * kib);
  unsigned taken = 0;
  while (world[0].send(world[1], data.data(), data.size(), 1, nullptr) == 0) ++taken;
  EXPECT_EQ(taken, 16u);
  std::vector<std::byte> got(20 * kib);
  ASSERT_EQ(world[1].receive(nullptr, got.data(), got.size(), 1, nullptr), 0);
  world.settle();
  EXPECT_EQ(world[0].send(world[1], data.data(), data.size(), 1, nullptr), 0);
}

// Requests without end, which an honest peer's own limit forbids.
TEST(Garbage, EndlessRequestsEndTheExchange) {
  MatcherLimits limits;
  limits.operations = 64;
  World world(2, limits);
  ASSERT_EQ(world[0].send(world[1], "", 0, 1, nullptr, 0), 0);
  RingOutbox& outbox = *world[0].network.outbound[2].outbox;
  for (int i = 0; i < 5000; ++i) {
    const Outbox::Slot slot = outbox.reserve(0, Outbox::Lane::eager);
    if (slot.header == nullptr) break;
    Header header;
    header.kind = PacketKind::request;
    header.flags = packet_tagged;
    header.far.length = 1000;
    header.far.token = 5;
    std::memcpy(static_cast<void*>(slot.header), &header, offsetof(Header, ready));
    outbox.commit();
    world[1].matcher.progress();
    if (world[1].network.dropped) break;
  }
  EXPECT_TRUE(world[1].network.dropped);
  EXPECT_LE(world[1].matcher.statistics().unexpected_messages.load(), 16 * 64u);
}

// A peer that writes whatever it likes into its segment: no crash, no byte outside (the sanitizers
// watch), and it is dropped.
TEST(Garbage, RandomPacketsAndSegments) {
  std::mt19937_64 random(20261122);
  for (int round = 0; round < 400; ++round) {
    World world(2);
    world[1].network.reach = Reachability{.pull = false};
    std::vector<std::byte> got(64 * kib);
    int context = 0;
    ASSERT_EQ(world[1].receive(nullptr, got.data(), got.size(), 1, &context), 0);
    ASSERT_EQ(world[0].send(world[1], "hi", 3, 2, nullptr, 0), 0);
    Channel& channel = world[0].network.outbound[2];
    for (int i = 0; i < 20; ++i) {
      // A packet that is well-formed for the ring, and nonsense for the protocol.
      const Outbox::Slot slot = channel.outbox->reserve(random() % 64, Outbox::Lane::eager);
      if (slot.header == nullptr) break;
      Header header;
      auto* words = reinterpret_cast<std::uint64_t*>(&header);
      for (int w = 0; w < 7; ++w) words[w] = random() % 3 == 0 ? random() : random() % 70;
      header.kind = static_cast<PacketKind>(random() % (static_cast<unsigned>(last_kind) + 2));
      if (random() % 2 == 0) header.payload = static_cast<std::uint32_t>(random() % 64);
      std::memcpy(static_cast<void*>(slot.header), &header, offsetof(Header, ready));
      channel.outbox->commit();
      world[1].matcher.progress();
    }
    // And the bytes of the whole segment.
    auto* bytes = reinterpret_cast<std::byte*>(channel.segment.get());
    for (int i = 0; i < 200; ++i)
      bytes[random() % segment_bytes] = static_cast<std::byte>(random());
    for (int i = 0; i < 5; ++i) {
      world[0].matcher.progress();
      world[1].matcher.progress();
    }
  }
}

}  // namespace
}  // namespace haul::fabric::test
