// Trials, with a clock of the test's own: a program whose messages take as long as their way and
// its own work do.
#include "fabric/protocol/trial.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "harness.hpp"

namespace haul::fabric {
namespace {

using test::Reachability;
using test::World;

using Way = Trial::Way;

// Runs `count` messages, of which each takes gap(way) ns; how many came directly.
unsigned run(Trial& trial, std::uint64_t& now_ns, unsigned count, Way usual,
             const std::function<std::uint64_t(Way)>& gap, bool alone = true) {
  unsigned direct = 0;
  for (unsigned i = 0; i < count; ++i) {
    const Way way = trial.choose(usual);
    direct += way == Way::direct;
    now_ns += gap(way);
    trial.done(now_ns, alone);
  }
  return direct;
}

std::function<std::uint64_t(Way)> takes(std::uint64_t pieces, std::uint64_t direct) {
  return [=](Way way) { return way == Way::direct ? direct : pieces; };
}

TEST(Trial, TheUsualWayIsTakenWhileNothingIsKnown) {
  for (const Way usual : {Way::pieces, Way::direct}) {
    Trial trial;
    for (unsigned i = 0; i < Trial::usual_interval; ++i) EXPECT_EQ(trial.choose(usual), usual);
  }
}

TEST(Trial, TheSoonerWayIsFoundAndKept) {
  for (const Way usual : {Way::pieces, Way::direct}) {
    const bool direct_wins = usual == Way::pieces;
    Trial trial;
    std::uint64_t now = 1;
    const auto gap = direct_wins ? takes(1000, 600) : takes(600, 1000);
    run(trial, now, 200, usual, gap);
    const unsigned direct = run(trial, now, 10'000, usual, gap);
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
  const unsigned direct = run(trial, now, 100'000, Way::pieces, takes(1000, 1500));
  EXPECT_GT(direct, 500u);  // it goes on trying
  EXPECT_LT(direct, 1000u);
}

TEST(Trial, WhatChangesIsFoundAgain) {
  Trial trial;
  std::uint64_t now = 1;
  run(trial, now, 5000, Way::pieces, takes(1000, 600));
  EXPECT_EQ(trial.choose(Way::pieces), Way::direct);
  run(trial, now, 5000, Way::pieces, takes(1000, 2000));
  const unsigned direct = run(trial, now, 5000, Way::pieces, takes(1000, 2000));
  EXPECT_LT(direct, 200u);
}

// Two per cent are no reason to change, and one trial is none either: a message in twenty takes ten
// times as long.
TEST(Trial, NoiseDoesNotDecide) {
  Trial trial;
  std::uint64_t now = 1, seed = 7;
  const auto noisy = [&](Way way) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t base = way == Way::direct ? 980 : 1000;
    return (seed >> 33) % 20 == 0 ? base * 10 : base + (seed >> 40) % 30;
  };
  EXPECT_LT(run(trial, now, 20'000, Way::pieces, noisy), 1000u);
}

// The first messages that go the other way find their buffers where the usual one left them.
TEST(Trial, TheFirstOfATrialDoNotCount) {
  Trial trial;
  std::uint64_t now = 1;
  unsigned in_a_row = 0;
  const auto gap = [&](Way way) -> std::uint64_t {
    in_a_row = way == Way::direct ? in_a_row + 1 : 0;
    return way == Way::pieces ? 1000 : in_a_row <= 3 ? 3000 : 600;
  };
  run(trial, now, 200, Way::pieces, gap);
  EXPECT_GT(run(trial, now, 1000, Way::pieces, gap), 900u);
}

TEST(Trial, MessagesThatComeTogetherTeachNothing) {
  Trial trial;
  std::uint64_t now = 1;
  EXPECT_EQ(run(trial, now, 10'000, Way::pieces, takes(1000, 10), false), 0u);
  // Some that came alone start a trial; while more come together it ends again.
  run(trial, now, Trial::counted + 2, Way::pieces, takes(1000, 10));
  EXPECT_LT(run(trial, now, 10'000, Way::pieces, takes(1000, 10), false), 100u);
}

TEST(Trial, AClockThatStandsOrGoesBackIsNoGap) {
  Trial trial;
  std::uint64_t now = 1'000'000'000;
  EXPECT_EQ(run(trial, now, 1000, Way::pieces, takes(0, 0)), 0u);
  for (unsigned i = 0; i < 1000; ++i) {
    EXPECT_EQ(trial.choose(Way::pieces), Way::pieces);
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
    for (; trial->choose(Way::pieces) == Way::pieces && count < 1000; ++count)
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

World& on_trial(World& world, Reachability reach, DirectAccess::Worth worth) {
  reach.worth = worth;
  world[0].network.reach = world[1].network.reach = reach;
  return world;
}

TEST(TrialsOfAPeer, TakeBothWaysOneMessageAtATime) {
  for (const DirectAccess::Worth worth :
       {DirectAccess::Worth::rarely, DirectAccess::Worth::mostly}) {
    for (const std::size_t bytes : {std::size_t{40000}, std::size_t{200} << 10}) {
      World world(2);
      exchange(on_trial(world, {.pull = true, .push = true, .delay = 2}, worth), bytes, 200, 1);
      const Statistics& to = world[1].matcher.statistics();
      const Statistics& from = world[0].matcher.statistics();
      EXPECT_NE(to.sent_messages[static_cast<std::size_t>(Path::cma)].load(), 0u);
      EXPECT_NE(from.sent_messages[static_cast<std::size_t>(Path::ring)].load(), 0u);
    }
  }
}

TEST(TrialsOfAPeer, KeepToTheUsualWayWhileMessagesComeTogether) {
  World world(2);
  exchange(on_trial(world, {.pull = true, .push = true}, DirectAccess::Worth::rarely), 40000, 400,
           4);
  EXPECT_EQ(world[0].network.starts + world[1].network.starts, 0u);
}

TEST(TrialsOfAPeer, FallBackWhereTheOtherWayIsRefused) {
  for (const unsigned good : {0u, 3u}) {
    World world(2);
    exchange(on_trial(world, {.pull = true, .push = true, .fail_after = good},
                      DirectAccess::Worth::rarely),
             40000, 200, 1);
    EXPECT_GT(world[1].network.starts, good);
  }
}

TEST(TrialsOfAPeer, EndWithIt) {
  for (unsigned turns = 0; turns < 12; ++turns) {
    World world(2);
    on_trial(world, {.pull = true, .push = true, .delay = 3}, DirectAccess::Worth::mostly);
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
