// The engine nic's fragments on a wire that loses, repeats and reorders them (devices/nic/stream):
// every byte arrives, once each piece is reported, and nothing is good before it is there.
#include "devices/nic/stream.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>
#include <vector>

namespace haul::nic {
namespace {

constexpr std::uint64_t ms = 1'000'000;

struct Copy {
  std::vector<std::uint8_t> from, to;
  explicit Copy(std::size_t bytes, std::mt19937_64& random) : from(bytes), to(bytes) {
    for (std::uint8_t& byte : from) byte = static_cast<std::uint8_t>(random());
  }
  Load load(std::uint64_t tag, std::size_t front, std::size_t end) {
    std::memcpy(to.data(), from.data(), front);
    return {tag,
            reinterpret_cast<std::uintptr_t>(to.data()),
            reinterpret_cast<std::uintptr_t>(from.data()),
            from.size(),
            front,
            end,
            {}};
  }
};

// A frame carries its bytes as they were when it was sent.
struct Frame {
  std::uint64_t number;
  std::vector<std::uint8_t> bytes;
};

class Wire {
 public:
  Wire(unsigned percent, std::mt19937_64& random) : percent_(percent), random_(random) {}

  void send(FragmentStream& stream, std::uint64_t now) {
    const unsigned count = std::min(stream.sendable(), 16u);
    for (unsigned i = 0; i < count; ++i) {
      const std::uint64_t number = stream.sent() + i;
      const Fragment fragment = stream.fragment(number);
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(fragment.src);
      const Frame frame{number, {bytes, bytes + fragment.bytes}};
      if (!happens()) frames_.push_back(frame);
      if (happens()) frames_.push_back(frame);
      if (frames_.size() > 1 && happens()) std::swap(frames_.back(), frames_[frames_.size() / 2]);
    }
    stream.send(count, now);
  }

  // The frames' bytes are put where the next fragment belongs, whatever they are, as by AF_PACKET.
  void receive(FragmentStream& stream, std::uint64_t now) {
    for (unsigned i = 0; i < 5 && !frames_.empty() && stream.arrived() < stream.sent(); ++i) {
      const Frame frame = frames_.front();
      frames_.pop_front();
      const Fragment fragment = stream.fragment(stream.arrived());
      std::memcpy(reinterpret_cast<void*>(fragment.dst), frame.bytes.data(),
                  std::min(fragment.bytes, frame.bytes.size()));
      if (frame.number == stream.arrived()) stream.arrive(1, now);
    }
  }

 private:
  bool happens() { return random_() % 100 < percent_; }

  unsigned percent_;
  std::mt19937_64& random_;
  std::deque<Frame> frames_;
};

class OnABadWire : public testing::TestWithParam<unsigned> {};

TEST_P(OnABadWire, EveryByteArrivesAndEachPieceEndsOnce) {
  std::mt19937_64 random(GetParam() + 1);
  FragmentStream stream;
  stream.start(97, 24);
  Wire wire(GetParam(), random);
  std::deque<Copy> copies;
  std::uint64_t now = 0, next = 0, ended = 0;
  constexpr std::uint64_t pieces = 400;
  while (ended < pieces) {
    ASSERT_LT(now, 100'000 * ms) << "the pieces never end";
    now += 20'000;
    while (next < pieces && stream.has_room()) {
      const std::size_t front = random() % 3 * 40, end = random() % 3 * 50;
      copies.emplace_back(front + end + 1 + random() % 2000, random);
      stream.add(copies.back().load(next++, front, end));
    }
    wire.receive(stream, now);
    stream.give_up(now);
    ASSERT_FALSE(stream.hopeless(now));
    wire.send(stream, now);
    Finished finished[4];
    const std::size_t count = stream.finish(finished, 4);
    for (std::size_t i = 0; i < count; ++i, ++ended) {
      ASSERT_EQ(finished[i].tag, ended);
      ASSERT_EQ(finished[i].outcome.code, Code::ok);
      ASSERT_EQ(finished[i].outcome.good_bytes, copies.front().from.size());
      ASSERT_EQ(copies.front().to, copies.front().from);
      copies.pop_front();
    }
  }
  EXPECT_TRUE(stream.idle());
  EXPECT_EQ(stream.arrived(), stream.behind());
  EXPECT_EQ(stream.resent() != 0, GetParam() != 0);
}
INSTANTIATE_TEST_SUITE_P(Percent, OnABadWire, testing::Values(0u, 1u, 5u, 30u));

TEST(FragmentStream, ShowsHowFarItIsAndWhatIsGoodWhenItFails) {
  std::mt19937_64 random(3);
  FragmentStream stream;
  stream.start(100, 8);
  Copy first(1000, random), second(500, random);
  std::atomic<std::uint64_t> word{0};
  Load load = first.load(1, 50, 20);
  load.watermark = {&word, 0, 0, 6};
  stream.add(load);
  stream.add(second.load(2, 30, 0));
  stream.send(stream.sendable(), 0);
  EXPECT_EQ(stream.sent(), 8u);
  stream.arrive(3, 0);
  EXPECT_EQ(word.load(), (50u + 300u) >> 6);
  EXPECT_EQ(stream.sendable(), 3u);
  Finished finished[4];
  EXPECT_EQ(stream.finish(finished, 4), 0u);
  stream.fail(Code::io);
  ASSERT_EQ(stream.finish(finished, 4), 2u);
  EXPECT_EQ(finished[0].outcome.good_bytes, 350u);
  EXPECT_EQ(finished[0].outcome.code, Code::io);
  EXPECT_EQ(finished[1].outcome.good_bytes, 30u);
  EXPECT_TRUE(stream.idle());
}

TEST(FragmentStream, SendsAgainFromTheFirstThatIsMissingAndThenLosesHope) {
  std::mt19937_64 random(4);
  FragmentStream stream;
  stream.start(100, 8);
  Copy copy(1000, random);
  stream.add(copy.load(1, 0, 0));
  std::uint64_t now = 1000 * ms;
  EXPECT_FALSE(stream.give_up(now)) << "nothing is under way";
  stream.send(5, now);
  EXPECT_FALSE(stream.give_up(now + ms));
  stream.arrive(2, now + ms);
  EXPECT_FALSE(stream.give_up(now + 5 * ms / 2)) << "something came meanwhile";
  EXPECT_TRUE(stream.give_up(now + 4 * ms));
  EXPECT_EQ(stream.sent(), 2u);
  EXPECT_EQ(stream.resent(), 3u);
  EXPECT_EQ(stream.turn(), 1u);
  // A frame that was given up comes after all.
  stream.arrive(2, now + 5 * ms);
  EXPECT_EQ(stream.sent(), 4u);
  stream.send(stream.sendable(), now + 5 * ms);
  const std::uint64_t begin = now += 5 * ms;
  for (; !stream.hopeless(now) && now < begin + 100'000 * ms; now += ms)
    if (stream.give_up(now)) stream.send(stream.sendable(), now);
  EXPECT_GT(now, begin + 1000 * ms) << "a link may take a second to come back";
  EXPECT_LT(now, begin + 2500 * ms) << "the channel's patience";
}

TEST(FragmentStream, AThreadThatWasAwayForLongHasNotLostHope) {
  std::mt19937_64 random(5);
  FragmentStream stream;
  stream.start(100, 8);
  Copy copy(1000, random);
  stream.add(copy.load(1, 0, 0));
  stream.send(5, 0);
  EXPECT_TRUE(stream.give_up(10'000 * ms));
  EXPECT_FALSE(stream.hopeless(10'000 * ms)) << "it was sent once";
}

TEST(FragmentStream, SendsLessToAWireThatIsTooSlowAndMoreAgain) {
  std::mt19937_64 random(8);
  FragmentStream stream;
  stream.start(1, 32);
  Copy copy(1000, random);
  stream.add(copy.load(1, 0, 0));
  EXPECT_EQ(stream.sendable(), 32u);
  for (std::uint64_t turn = 1; turn <= 5; ++turn) {
    stream.send(stream.sendable(), turn * 1000 * ms);
    EXPECT_TRUE(stream.give_up(turn * 1000 * ms + 500 * ms));
  }
  EXPECT_EQ(stream.sendable(), 4u);
  stream.send(4, 6000 * ms);
  stream.arrive(4, 6000 * ms);
  EXPECT_EQ(stream.sendable(), 8u);
  stream.send(8, 6000 * ms);
  stream.came_early();
  EXPECT_TRUE(stream.give_up(6000 * ms));
  ASSERT_EQ(stream.sendable(), 8u) << "one that is lost tells nothing of the wire's speed";
  for (unsigned turn = 0; turn < 2; ++turn) {
    const unsigned count = stream.sendable();
    stream.send(count, 6000 * ms);
    stream.arrive(count, 6000 * ms);
  }
  EXPECT_EQ(stream.sendable(), 32u);
}

TEST(FragmentStream, SendsAgainAtOnceWhatAnotherHasOvertaken) {
  std::mt19937_64 random(6);
  FragmentStream stream;
  stream.start(100, 8);
  Copy copy(1000, random);
  stream.add(copy.load(1, 0, 0));
  stream.send(5, 0);
  stream.arrive(1, 0);
  stream.came_early();
  EXPECT_TRUE(stream.give_up(1));
  EXPECT_EQ(stream.sent(), 1u);
  stream.send(4, 1);
  EXPECT_FALSE(stream.give_up(2)) << "once for each turn";
}

// How long a stream waits before it sends again.
std::uint64_t patience_of(FragmentStream& stream, std::uint64_t now) {
  stream.send(1, now);
  std::uint64_t waited = 0;
  while (!stream.give_up(now + waited)) waited += ms / 10;
  return waited;
}

TEST(FragmentStream, HasMorePatienceWithAWireThatIsSlowUntilItIsNot) {
  std::mt19937_64 random(7);
  FragmentStream stream;
  stream.start(1, 8);
  Copy copy(400'000, random);
  stream.add(copy.load(1, 0, 0));
  const std::uint64_t first = patience_of(stream, 0);
  stream.came_late();
  stream.came_late();
  stream.arrive(1, 0);
  EXPECT_EQ(patience_of(stream, 0), 2 * first) << "once for each turn that began too early";
  stream.came_late();
  stream.arrive(1, 0);
  EXPECT_EQ(patience_of(stream, 0), 4 * first);
  for (unsigned i = 0; i < 300'000; ++i) {
    stream.send(1, 0);
    stream.arrive(1, 0);
  }
  EXPECT_EQ(patience_of(stream, 0), first);
}

}  // namespace
}  // namespace haul::nic
