// Trials, with a clock of the test's own: a program whose messages take as long as their way and
// its own work do.
#include "fabric/protocol/trial.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "harness.hpp"

namespace haul::fabric {
namespace {

using test::Reachability;
using test::World;

constexpr MessageWays usually_pieces(MessageWay::pieces, {MessageWay::direct}),
    usually_direct(MessageWay::direct, {MessageWay::pieces});

using Gap = std::function<std::uint64_t(MessageWay)>;

// Runs `count` messages, of which each takes gap(way) ns; how many came each way.
std::array<unsigned, way_count> run_all(Trial& trial, std::uint64_t& now_ns, unsigned count,
                                        MessageWays ways, const Gap& gap, bool alone = true) {
  std::array<unsigned, way_count> came{};
  for (unsigned i = 0; i < count; ++i) {
    const MessageWay way = trial.choose(ways);
    ++came[static_cast<std::size_t>(way)];
    now_ns += gap(way);
    trial.done(now_ns, alone);
  }
  return came;
}
// ... how many came directly.
unsigned run(Trial& trial, std::uint64_t& now_ns, unsigned count, MessageWays ways, const Gap& gap,
             bool alone = true) {
  return run_all(trial, now_ns, count, ways, gap,
                 alone)[static_cast<std::size_t>(MessageWay::direct)];
}

Gap takes(std::uint64_t pieces, std::uint64_t direct, std::uint64_t streamed = 0) {
  return [=](MessageWay way) {
    return way == MessageWay::direct ? direct : way == MessageWay::pieces ? pieces : streamed;
  };
}

TEST(Trial, TheUsualWayIsTakenWhileNothingIsKnown) {
  for (const MessageWays ways : {usually_pieces, usually_direct}) {
    Trial trial;
    for (unsigned i = 0; i < Trial::usual_interval; ++i)
      EXPECT_EQ(trial.choose(ways), ways.usual());
  }
}

TEST(Trial, TheSoonerWayIsFoundAndKept) {
  for (const MessageWays ways : {usually_pieces, usually_direct}) {
    const bool direct_wins = ways == usually_pieces;
    Trial trial;
    std::uint64_t now = 1;
    const auto gap = direct_wins ? takes(1000, 600) : takes(600, 1000);
    run(trial, now, 200, ways, gap);
    const unsigned direct = run(trial, now, 10'000, ways, gap);
    if (direct_wins) {
      EXPECT_GT(direct, 9800u);
    } else {
      EXPECT_LT(direct, 200u);
    }
  }
}

TEST(Trial, TheSlowerWayCostsLittle) {
  Trial trial;
  std::uint64_t now = 1;
  const unsigned direct = run(trial, now, 100'000, usually_pieces, takes(1000, 1500));
  EXPECT_GT(direct, 500u);  // it goes on trying
  EXPECT_LT(direct, 1000u);
}

TEST(Trial, WhatChangesIsFoundAgain) {
  Trial trial;
  std::uint64_t now = 1;
  run(trial, now, 5000, usually_pieces, takes(1000, 600));
  EXPECT_EQ(trial.choose(usually_pieces), MessageWay::direct);
  run(trial, now, 5000, usually_pieces, takes(1000, 2000));
  const unsigned direct = run(trial, now, 5000, usually_pieces, takes(1000, 2000));
  EXPECT_LT(direct, 200u);
}

// Of three ways each has its trials, and the soonest is found whichever is usual.
TEST(Trial, TheSoonestOfThreeIsFoundAndKept) {
  constexpr MessageWay all[] = {MessageWay::pieces, MessageWay::direct, MessageWay::streamed};
  for (const MessageWay usual : all) {
    for (const MessageWay best : all) {
      Trial trial;
      std::uint64_t now = 1;
      const auto gap = [best](MessageWay way) -> std::uint64_t {
        return way == best ? 600 : way == MessageWay::direct ? 1000 : 1200;
      };
      const MessageWays ways(usual, {MessageWay::pieces, MessageWay::direct, MessageWay::streamed});
      run_all(trial, now, 500, ways, gap);
      const auto came = run_all(trial, now, 10'000, ways, gap);
      EXPECT_GT(came[static_cast<std::size_t>(best)], 9800u);
      for (const unsigned count : came) EXPECT_GT(count, 10u) << "it goes on trying each";
    }
  }
}

// Of a way that is much slower only the messages that nobody counts and two more are sent.
TEST(Trial, AHopelessOneEndsSoon) {
  Trial trial;
  std::uint64_t now = 1;
  constexpr unsigned shortest = Trial::settling + Trial::counted_at_least;
  constexpr unsigned intervals = Trial::usual_interval * (1 + 4 + 16);
  EXPECT_EQ(run(trial, now, intervals + 3 * shortest, usually_pieces, takes(1000, 4000)),
            3 * shortest);
}

// The rivals of a round follow each other soon, so that the second of them need not wait long.
TEST(Trial, TheSecondRivalIsFoundSoonAfterTheFirst) {
  Trial trial;
  std::uint64_t now = 1;
  const MessageWays ways(MessageWay::direct, {MessageWay::pieces, MessageWay::streamed});
  const auto came = run_all(trial, now, 2 * Trial::usual_interval, ways, takes(400, 1000, 2000));
  EXPECT_GE(came[static_cast<std::size_t>(MessageWay::pieces)], 18u);
  EXPECT_EQ(trial.choose(ways), MessageWay::pieces);
}

// Most messages of the size have another way, which happens to be slow while nothing is tried, and
// fast meanwhile: that says nothing of the two that are compared.
TEST(Trial, WhatTookAnotherWayTeachesNothing) {
  Trial trial;
  std::uint64_t now = 1;
  unsigned direct = 0;
  bool tries = false;
  for (unsigned i = 0; i < 10'000; ++i) {
    const bool other = i % 3 != 0;
    const MessageWay way = trial.choose(other ? MessageWay::streamed : usually_pieces);
    if (!other) tries = way == MessageWay::direct;
    direct += way == MessageWay::direct;
    now += other ? (tries ? 10 : 5000) : tries ? 990 : 1000;
    trial.done(now, true);
  }
  EXPECT_GT(direct, 0u);
  EXPECT_LT(direct, 300u);
}

// A message may have other ways than those before of its size.
TEST(Trial, NothingIsChosenThatIsNotOpen) {
  Trial trial;
  std::uint64_t now = 1;
  run(trial, now, 500, usually_pieces, takes(1000, 600));
  EXPECT_EQ(trial.choose(usually_pieces), MessageWay::direct);
  EXPECT_EQ(trial.choose(MessageWay::pieces), MessageWay::pieces);
  EXPECT_EQ(trial.choose({MessageWay::pieces, {MessageWay::streamed}}), MessageWay::pieces);
  EXPECT_EQ(run(trial, now, 5000, MessageWay::pieces, takes(1000, 600)), 0u);
}

// Two per cent are no reason to change, and one trial is none either: a message in twenty takes ten
// times as long.
TEST(Trial, NoiseDoesNotDecide) {
  Trial trial;
  std::uint64_t now = 1, seed = 7;
  const auto noisy = [&](MessageWay way) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t base = way == MessageWay::direct ? 980 : 1000;
    return (seed >> 33) % 20 == 0 ? base * 10 : base + (seed >> 40) % 30;
  };
  EXPECT_LT(run(trial, now, 20'000, usually_pieces, noisy), 1000u);
}

// The first messages that go the other way find their buffers where the usual one left them.
TEST(Trial, TheFirstOfATrialDoNotCount) {
  Trial trial;
  std::uint64_t now = 1;
  unsigned in_a_row = 0;
  const auto gap = [&](MessageWay way) -> std::uint64_t {
    in_a_row = way == MessageWay::direct ? in_a_row + 1 : 0;
    return way == MessageWay::pieces ? 1000 : in_a_row <= 3 ? 3000 : 600;
  };
  run(trial, now, 200, usually_pieces, gap);
  EXPECT_GT(run(trial, now, 1000, usually_pieces, gap), 900u);
}

TEST(Trial, MessagesThatComeTogetherTeachNothing) {
  Trial trial;
  std::uint64_t now = 1;
  EXPECT_EQ(run(trial, now, 10'000, usually_pieces, takes(1000, 10), false), 0u);
  // Some that came alone start a trial; while more come together it ends again.
  run(trial, now, Trial::counted + 2, usually_pieces, takes(1000, 10));
  EXPECT_LT(run(trial, now, 10'000, usually_pieces, takes(1000, 10), false), 100u);
}

TEST(Trial, AClockThatStandsOrGoesBackIsNoGap) {
  Trial trial;
  std::uint64_t now = 1'000'000'000;
  EXPECT_EQ(run(trial, now, 1000, usually_pieces, takes(0, 0)), 0u);
  for (unsigned i = 0; i < 1000; ++i) {
    EXPECT_EQ(trial.choose(usually_pieces), MessageWay::pieces);
    trial.done(now -= 10, true);
  }
}

TEST(Trials, AreByPowersOfTwo) {
  Trials trials;
  EXPECT_EQ(trials.of(0), nullptr);
  EXPECT_EQ(trials.of(16383), nullptr);
  EXPECT_NE(trials.of(16384), nullptr);
  EXPECT_EQ(trials.of(16384), trials.of(32767));
  EXPECT_NE(trials.of(16384), trials.of(32768));
  EXPECT_NE(trials.of((1u << 24) - 1), trials.of(1u << 24));
  EXPECT_EQ(trials.of(1u << 24), trials.of(SIZE_MAX));
}

TEST(Trials, OfLongMessagesComeSooner) {
  Trials trials;
  const auto usual_ones = [&trials](std::size_t bytes) {
    Trial* const trial = trials.of(bytes);
    std::uint64_t now = 1;
    unsigned count = 0;
    for (; trial->choose(usually_pieces) == MessageWay::pieces && count < 1000; ++count)
      trial->done(now += 1000, true);
    return count;
  };
  EXPECT_EQ(usual_ones(1u << 14), Trial::usual_interval);
  EXPECT_EQ(usual_ones(1u << 20), Trial::usual_interval);
  EXPECT_EQ(usual_ones(1u << 21), Trial::usual_interval / 2);
  EXPECT_LE(usual_ones(std::size_t{1} << 40), 16u);
}

// Matchers whose direct access leaves it to trials. Each message arrives right, whichever way it
// takes.
void exchange(World& world, std::size_t bytes, unsigned messages, unsigned at_once) {
  const auto data = test::pattern(bytes, 5);
  std::vector<std::vector<std::byte>> got(at_once, std::vector<std::byte>(bytes));
  std::vector<int> sent(at_once), received(at_once);
  for (unsigned done = 0; done < messages; done += at_once) {
    for (unsigned i = 0; i < at_once; ++i) {
      std::fill(got[i].begin(), got[i].end(), std::byte{0});
      ASSERT_EQ(world[1].receive(nullptr, got[i].data(), bytes, 3, &received[i]), 0);
      ASSERT_EQ(world[0].send(world[1], data.data(), bytes, 3, &sent[i]), 0);
    }
    world.settle();
    for (unsigned i = 0; i < at_once; ++i) {
      ASSERT_EQ(world[0].take(&sent[i]).error, 0);
      ASSERT_EQ(world[1].take(&received[i]).error, 0);
      ASSERT_EQ(got[i], data);
    }
  }
}

World& on_trial(World& world, Reachability reach, MessageWays ways) {
  reach.ways = ways;
  world[0].network.reach = world[1].network.reach = reach;
  return world;
}

TEST(TrialsOfAPeer, TakeBothWaysOneMessageAtATime) {
  for (const MessageWays ways : {usually_pieces, usually_direct}) {
    for (const std::size_t bytes : {std::size_t{40000}, std::size_t{200} << 10}) {
      World world(2);
      exchange(on_trial(world, {.pull = true, .push = true, .delay = 2}, ways), bytes, 200, 1);
      const Statistics& to = world[1].matcher.statistics();
      const Statistics& from = world[0].matcher.statistics();
      EXPECT_NE(to.sent_messages[static_cast<std::size_t>(Path::cma)].load(), 0u);
      EXPECT_NE(from.sent_messages[static_cast<std::size_t>(Path::ring)].load(), 0u);
    }
  }
}

// A mapping that is refused falls back to pieces, and learning goes on.
TEST(TrialsOfAPeer, OfMappedMemoryOutliveRefusals) {
  for (const bool sender_copies : {false, true}) {
    for (const unsigned good : {0u, 3u}) {
      World world(2);
      Reachability reach{.pull = true, .push = true, .fail_after = good, .arena = true};
      reach.ways = reach.mapped_ways =
          MessageWays(MessageWay::direct, {MessageWay::pieces, MessageWay::streamed});
      world[0].network.reach = world[1].network.reach = reach;
      if (sender_copies) {
        world[0].network.reach.arena = false;
        world[1].network.reach.mapped_only = world[0].network.reach.mapped_only = true;
      }
      exchange(world, std::size_t{300} << 10, 300, 1);
      for (auto& node : {&world[0], &world[1]}) node->network.reach.fail_after = ~0u;
      exchange(world, std::size_t{300} << 10, 300, 1);
      EXPECT_EQ(world[1].matcher.statistics().copies_in_flight.load(), 0u);
      EXPECT_NE(world[0].network.streams, 0u);
    }
  }
}

// Both sides write their shares past the caches if the receiver says so, and in turn not.
TEST(TrialsOfAPeer, OfMappedMemoryTryAllWays) {
  constexpr MessageWays mapped(MessageWay::direct, {MessageWay::pieces, MessageWay::streamed});
  for (const bool sender_copies : {false, true}) {
    World world(2);
    Reachability reach{.pull = true, .push = true, .delay = 1, .arena = true};
    reach.ways = reach.mapped_ways = mapped;
    world[0].network.reach = world[1].network.reach = reach;
    if (sender_copies) {
      world[0].network.reach.arena = false;
      world[1].network.reach.mapped_only = world[0].network.reach.mapped_only = true;
    }
    exchange(world, std::size_t{300} << 10, 400, 1);
    const Statistics& from = world[0].matcher.statistics();
    const Statistics& to = world[1].matcher.statistics();
    EXPECT_NE(from.sent_messages[static_cast<std::size_t>(Path::ring)].load(), 0u);
    EXPECT_NE(to.sent_messages[static_cast<std::size_t>(Path::mapped)].load(), 0u);
    EXPECT_EQ(world[1].network.streams == 0, sender_copies);
    if (!sender_copies) {
      EXPECT_LT(world[1].network.streams, world[1].network.starts);
    }
    EXPECT_NE(world[0].network.streams, 0u);
    EXPECT_LT(world[0].network.streams, world[0].network.starts);
  }
}

TEST(TrialsOfAPeer, KeepToTheUsualWayWhileMessagesComeTogether) {
  World world(2);
  exchange(on_trial(world, {.pull = true, .push = true}, usually_pieces), 40000, 400, 4);
  EXPECT_EQ(world[0].network.starts + world[1].network.starts, 0u);
}

TEST(TrialsOfAPeer, FallBackWhereTheOtherWayIsRefused) {
  for (const unsigned good : {0u, 3u}) {
    World world(2);
    exchange(on_trial(world, {.pull = true, .push = true, .fail_after = good}, usually_pieces),
             40000, 200, 1);
    EXPECT_GT(world[1].network.starts, good);
  }
}

TEST(TrialsOfAPeer, EndWithIt) {
  for (unsigned turns = 0; turns < 12; ++turns) {
    World world(2);
    on_trial(world, {.pull = true, .push = true, .delay = 3}, usually_direct);
    const auto data = test::pattern(40000, 5);
    std::vector<std::byte> got(data.size());
    int sent = 0, received = 0;
    ASSERT_EQ(world[1].receive(&world[0], got.data(), got.size(), 3, &received), 0);
    ASSERT_EQ(world[0].send(world[1], data.data(), data.size(), 3, &sent), 0);
    for (unsigned i = 0; i < turns; ++i) world[i % 2].matcher.progress();
    world.kill(0);
    world.settle();
    const CompletionNotice completion = world[1].take(&received);
    EXPECT_TRUE(completion.error == 0 ? got == data : completion.error == FI_ECONNRESET)
        << completion.error;
  }
}

}  // namespace
}  // namespace haul::fabric
