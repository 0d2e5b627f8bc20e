// The queue lock's members among each other: exclusion, order, progress, in fair and foul weather.
#include <gtest/gtest.h>

#include "repeats.hpp"
#include "unit/atomic/lock_world.hpp"

using namespace haul;
using namespace haul::atomics::lock;
using namespace haul::atomics::lock::test;

namespace {

TEST(Lock, AloneItTakesOnePacketEach) {
  World world(2, 1, {});
  EXPECT_EQ(run(world, 0, Goal::acquire), Code::ok);
  EXPECT_TRUE(world.players[0]->member->holds());
  EXPECT_EQ(world.players[0]->member->token(), 1u);
  EXPECT_EQ(run(world, 1, Goal::try_once), Code::again);
  EXPECT_EQ(run(world, 0, Goal::release), Code::ok);
  EXPECT_EQ(world.home[0] & held, 0u);
  EXPECT_EQ(world.home[1], 0u);
  EXPECT_EQ(run(world, 1, Goal::try_once), Code::ok);
  EXPECT_EQ(world.players[1]->member->token(), 2u);
}

TEST(Lock, WhatDoesNotFitIsRefused) {
  World world(1, 1, {});
  Member& member = *world.players[0]->member;
  EXPECT_EQ(member.begin(Goal::release, world.now_ns, 0), Code::invalid);
  EXPECT_EQ(member.begin(Goal::renew, world.now_ns, 0), Code::invalid);
  EXPECT_EQ(member.begin(Goal::none, world.now_ns, 0), Code::invalid);
  EXPECT_EQ(run(world, 0, Goal::acquire), Code::ok);
  EXPECT_EQ(member.begin(Goal::acquire, world.now_ns, 0), Code::invalid);
}

TEST(Lock, RenewingGivesTimeAndKeepsTheToken) {
  World world(1, 1, {});
  run(world, 0, Goal::acquire);
  Member& member = *world.players[0]->member;
  const std::uint64_t token = member.token(), until = member.safe_until_ns();
  EXPECT_EQ(run(world, 0, Goal::renew), Code::ok);  // too soon to change anything
  EXPECT_EQ(member.safe_until_ns(), until);
  pass(world, World::lease_ns / 10);
  EXPECT_EQ(run(world, 0, Goal::renew), Code::ok);
  EXPECT_EQ(member.token(), token);
  EXPECT_GT(member.safe_until_ns(), until);
  EXPECT_EQ(run(world, 0, Goal::release), Code::ok);
  EXPECT_EQ(world.home[0] & held, 0u);
}

TEST(Lock, WaitersGetItInTheOrderTheyCame) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    World world(5, seed, {});
    ASSERT_EQ(run(world, 0, Goal::acquire), Code::ok);
    for (unsigned rank = 1; rank < 5; ++rank) {
      begin(world, rank);
      if (seed % 2 == 0) pass(world, 50'000);
    }
    pass(world, 100'000);
    ASSERT_EQ(world.order.size(), 5u);
    std::vector<unsigned> got{0};
    while (got.size() < 5) {
      ASSERT_EQ(run(world, got.back(), Goal::release), Code::ok);
      pass(world, 100'000);
      for (unsigned rank = 0; rank < 5; ++rank) {
        if (world.players[rank]->member->holds()) got.push_back(rank);
      }
    }
    EXPECT_EQ(got, world.order) << "seed " << seed;
  }
}

TEST(Lock, WhoGivesUpIsPassedOverAndTheOthersKeepTheirOrder) {
  World world(4, 3, {});
  run(world, 0, Goal::acquire);
  begin(world, 1, 200'000);
  pass(world, 100'000);
  begin(world, 2);
  pass(world, 50'000);
  begin(world, 3);
  pass(world, 200'000);
  EXPECT_EQ(world.players[1]->member->result(), Code::timed_out);
  EXPECT_EQ(run(world, 0, Goal::release), Code::ok);
  pass(world, 100'000);
  EXPECT_TRUE(world.players[2]->member->holds());
  EXPECT_EQ(world.players[0]->member->counts().skipped, 1u);
  // It may come again, behind the others.
  begin(world, 1);
  pass(world, 100'000);
  EXPECT_EQ(run(world, 2, Goal::release), Code::ok);
  pass(world, 100'000);
  EXPECT_TRUE(world.players[3]->member->holds());
  EXPECT_EQ(run(world, 3, Goal::release), Code::ok);
  pass(world, 100'000);
  EXPECT_TRUE(world.players[1]->member->holds());
}

TEST(Lock, WhoComesBackHasItsOldPlace) {
  World world(3, 4, {});
  run(world, 0, Goal::acquire);
  begin(world, 1, 100'000);
  pass(world, 50'000);
  begin(world, 2);
  pass(world, 200'000);
  EXPECT_EQ(world.players[1]->member->result(), Code::timed_out);
  EXPECT_EQ(run(world, 1, Goal::try_once), Code::again);
  begin(world, 1);
  pass(world, 50'000);
  run(world, 0, Goal::release);
  pass(world, 100'000);
  EXPECT_TRUE(world.players[1]->member->holds());
}

TEST(Lock, TheLastWaiterGivesUpAndTheLockIsFree) {
  World world(2, 5, {});
  run(world, 0, Goal::acquire);
  begin(world, 1, 100'000);
  pass(world, 200'000);
  EXPECT_EQ(run(world, 0, Goal::release), Code::ok);
  EXPECT_EQ(world.home[0] & held, 0u);
  EXPECT_EQ(world.home[1], 0u);
  EXPECT_EQ(run(world, 1, Goal::try_once), Code::ok);
}

TEST(Lock, ADeadHolderIsSucceededAfterItsLease) {
  World world(3, 6, {});
  run(world, 0, Goal::acquire);
  const std::uint64_t token = world.players[0]->member->token();
  world.players[0]->dead = true;
  const std::uint64_t start_ns = world.now_ns;
  begin(world, 1);
  begin(world, 2);
  pass(world, World::lease_ns / 2);
  EXPECT_FALSE(world.players[1]->member->holds() || world.players[2]->member->holds());
  while (!world.players[1]->member->holds() && !world.players[2]->member->holds()) {
    ASSERT_LT(world.now_ns, start_ns + 3 * World::lease_ns);
    pass(world, 10'000);
  }
  const unsigned winner = world.players[1]->member->holds() ? 1 : 2;
  EXPECT_GT(world.players[winner]->member->token(), token);
  EXPECT_EQ(run(world, winner, Goal::release), Code::ok);
  pass(world, 2 * World::lease_ns);
  EXPECT_TRUE(world.players[3 - winner]->member->holds());
}

TEST(Lock, ADeadWaiterDoesNotHoldUpTheOthers) {
  World world(3, 7, {});
  run(world, 0, Goal::acquire);
  begin(world, 1);
  pass(world, 50'000);
  begin(world, 2);
  pass(world, 50'000);
  world.players[1]->dead = true;
  EXPECT_EQ(run(world, 0, Goal::release), Code::ok);
  pass(world, 3 * World::lease_ns);
  EXPECT_TRUE(world.players[2]->member->holds());
}

TEST(Lock, AnUnreachableWaiterDoesNotHoldUpTheOthers) {
  World world(3, 8, {});
  run(world, 0, Goal::acquire);
  begin(world, 1);
  pass(world, 50'000);
  begin(world, 2);
  pass(world, 50'000);
  world.players[1]->dead = world.players[1]->unreachable = true;
  EXPECT_EQ(run(world, 0, Goal::release), Code::ok);
  EXPECT_EQ(world.players[0]->member->counts().forced, 1u);
  pass(world, World::lease_ns);
  EXPECT_TRUE(world.players[2]->member->holds());
}

TEST(Lock, APausedHolderLearnsThatItLostIt) {
  World world(2, 9, {});
  run(world, 0, Goal::acquire);
  const std::uint64_t old_token = world.players[0]->member->token();
  world.players[0]->dead = true;
  begin(world, 1);
  pass(world, 2 * World::lease_ns);
  ASSERT_TRUE(world.players[1]->member->holds());
  EXPECT_GT(world.players[1]->member->token(), old_token);
  world.players[0]->dead = false;
  EXPECT_EQ(run(world, 0, Goal::renew), Code::stale);
  EXPECT_FALSE(world.players[0]->member->holds());
  EXPECT_TRUE(world.players[1]->member->holds());
  EXPECT_EQ(run(world, 1, Goal::release), Code::ok);
}

// Any weather: no two members within their leases at once, `state` only grows, tokens too, and once
// the weather clears everybody gets it.
void storm(unsigned seed, unsigned count, const Weather& weather, bool deaths) {
  World world(count, seed, weather);
  struct Holder {
    bool holds = false;
    std::uint64_t token = 0, safe_until_ns = 0;
  };
  std::vector<Holder> holders(count);
  std::uint64_t newest = 0, acquired = 0;
  const auto step = [&](unsigned rank) {
    World::Player& player = *world.players[rank];
    Member& member = *player.member;
    Holder& holder = holders[rank];
    if (player.dead || world.now_ns < player.asleep_until_ns) return;
    const bool ended = member.step(world.now_ns);
    if (ended && member.holds() && member.token() != holder.token) {
      holder = {true, member.token(), member.safe_until_ns()};
      ASSERT_GT(member.token(), newest) << "seed " << seed;
      newest = member.token();
      ++acquired;
      for (unsigned other = 0; other < count; ++other) {
        if (other == rank || !holders[other].holds) continue;
        ASSERT_GE(world.now_ns, holders[other].safe_until_ns) << "seed " << seed << ": two hold it";
      }
    }
    if (!member.holds()) holder.holds = false;
    if (ended) {
      const bool now = world.chance(100);
      if (member.holds() && now) {
        member.begin(Goal::release, world.now_ns, 0);
        holder.holds = false;  // the promise ends here
      } else if (!member.holds() && now) {
        const bool tries = world.chance(100);
        const std::uint64_t until =
            world.chance(300) ? world.now_ns + world.random(World::lease_ns) : for_ever;
        member.begin(tries ? Goal::try_once : Goal::acquire, world.now_ns, until);
      }
    }
    if (world.chance(world.weather.paused_per_mille)) {
      player.asleep_until_ns = world.now_ns + world.random(2 * World::lease_ns);
    }
  };
  constexpr unsigned steps = 60'000;
  for (unsigned i = 0; i < steps; ++i) {
    for (unsigned rank = 0; rank < count; ++rank) step(rank);
    world.pass();
    ASSERT_FALSE(world.state_shrank) << "seed " << seed;
    if (deaths && i == steps / 2) {
      world.players[0]->dead = true;
      world.players[0]->unreachable = world.chance(500);
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
  world.weather.lost_per_mille = world.weather.paused_per_mille = 0;
  std::vector<bool> got(count, false);
  for (unsigned i = 0; i < 1'000'000; ++i) {
    bool all = true;
    for (unsigned rank = 0; rank < count; ++rank) {
      step(rank);
      if (world.players[rank]->member->holds()) got[rank] = true;
      all = all && (got[rank] || world.players[rank]->dead);
    }
    if (all) break;
    world.pass();
    if (::testing::Test::HasFatalFailure()) return;
  }
  for (unsigned rank = 0; rank < count; ++rank) {
    EXPECT_TRUE(got[rank] || world.players[rank]->dead) << "seed " << seed << " rank " << rank;
  }
  EXPECT_GE(acquired, count) << "seed " << seed;
}

TEST(LockStorm, Fair) {
  for (unsigned seed = 0; seed < testing_haul::repeats(40); ++seed)
    storm(seed, 2 + seed % 4, {}, false);
}

TEST(LockStorm, LossesAndPauses) {
  for (unsigned seed = 0; seed < testing_haul::repeats(60); ++seed) {
    Weather weather;
    weather.lost_per_mille = seed % 3 == 0 ? 0 : 20;
    weather.paused_per_mille = seed % 3 == 1 ? 0 : 1;
    storm(seed, 2 + seed % 4, weather, false);
  }
}

TEST(LockStorm, Deaths) {
  for (unsigned seed = 0; seed < testing_haul::repeats(40); ++seed) {
    Weather weather;
    weather.lost_per_mille = seed % 2 == 0 ? 0 : 10;
    weather.paused_per_mille = 1;
    storm(seed, 3 + seed % 3, weather, true);
  }
}

}  // namespace
