// The queue lock's members when time, the network or the home play tricks on them.
#include <gtest/gtest.h>

#include "unit/atomic/lock_world.hpp"

using namespace haul;
using namespace haul::atomics::lock;
using namespace haul::atomics::lock::test;

namespace {

constexpr std::uint64_t beat_every_ns = World::lease_ns / 50;
constexpr unsigned round_of_beats = beats / beat;
// How often is once around, whether beat 0 is passed over or not? And twice.
constexpr unsigned rounds[] = {1,
                               round_of_beats - 1,
                               round_of_beats,
                               round_of_beats + 1,
                               2 * round_of_beats,
                               2 * round_of_beats + 1,
                               2 * round_of_beats + 2};

void renew(World& world, unsigned times) {
  for (unsigned i = 0; i < times; ++i) {
    pass(world, beat_every_ns);
    ASSERT_EQ(run(world, 0, Goal::renew), Code::ok) << "renewal " << i;
  }
}

void step(World& world, unsigned rank) {
  world.players[rank]->member->step(world.now_ns);
}

TEST(LockTrouble, NoRoundOfBeatsLooksLikeSilence) {
  for (const unsigned renewals : rounds) {
    World world(2, renewals, {});
    ASSERT_EQ(run(world, 0, Goal::acquire), Code::ok);
    begin(world, 1);
    pass(world, World::lease_ns / 2);
    world.players[1]->dead = true;  // paused, with the lock seen as it is now
    renew(world, renewals);
    world.players[1]->dead = false;
    pass(world, World::lease_ns / 4);
    ASSERT_FALSE(world.players[1]->member->holds()) << renewals << " renewals";
    ASSERT_EQ(run(world, 0, Goal::renew), Code::ok) << renewals << " renewals";
  }
}

TEST(LockTrouble, ATakeOverThatComesLateMissesAHolderThatLives) {
  for (const unsigned renewals : rounds) {
    World world(2, renewals, {});
    ASSERT_EQ(run(world, 0, Goal::acquire), Code::ok);
    begin(world, 1);
    pass(world, World::lease_ns / 2);
    renew(world, 3);
    World::Player& waiter = *world.players[1];
    const auto takes_over = [&] {
      return waiter.place == Courier::home && waiter.packet.size() == 2 &&
             waiter.packet[0].code == HAUL_ATOMIC_CAS && waiter.executed == 0;
    };
    for (unsigned i = 0; i < 100'000 && !takes_over(); ++i) {
      step(world, 1);
      if (!takes_over()) world.pass();
    }
    ASSERT_TRUE(takes_over());
    waiter.next_ns = ~std::uint64_t{0};
    renew(world, renewals);  // it was paused, and goes on
    waiter.next_ns = 0;
    pass(world, World::lease_ns / 4);
    ASSERT_FALSE(waiter.member->holds()) << renewals << " renewals";
    ASSERT_EQ(run(world, 0, Goal::renew), Code::ok) << renewals << " renewals";
  }
}

TEST(LockTrouble, TheLockIsSeenWhenTheAnswerComesNotWhenItWasLookedFor) {
  World world(2, 1, {});
  ASSERT_EQ(run(world, 0, Goal::acquire), Code::ok);
  begin(world, 1);
  pass(world, World::lease_ns / 2);
  World::Player& waiter = *world.players[1];
  while (waiter.packet.empty()) {
    step(world, 1);
    if (waiter.packet.empty()) world.pass();
  }
  waiter.next_ns = ~std::uint64_t{0};
  const std::uint64_t looked_ns = world.now_ns;  // its thread reads the time, and is paused
  waiter.dead = true;
  renew(world, 60);
  waiter.next_ns = 0;
  pass(world, World::lease_ns / 100);
  waiter.member->step(looked_ns);
  waiter.dead = false;
  const Member& holder = *world.players[0]->member;
  while (world.now_ns < holder.safe_until_ns()) {
    step(world, 1);
    ASSERT_FALSE(waiter.member->holds());
    world.pass();
  }
}

TEST(LockTrouble, WaitersKeepTheirOrderBehindAHolderThatRenewsForLong) {
  World world(3, 1, {});
  ASSERT_EQ(run(world, 0, Goal::acquire), Code::ok);
  const std::uint64_t token = world.players[0]->member->token();
  begin(world, 1);
  pass(world, 50'000);
  begin(world, 2);
  pass(world, 50'000);
  renew(world, 20 * round_of_beats);
  EXPECT_EQ(world.players[0]->member->token(), token);
  EXPECT_EQ(run(world, 0, Goal::release), Code::ok);
  pass(world, 100'000);
  ASSERT_TRUE(world.players[1]->member->holds());
  EXPECT_GT(world.players[1]->member->token(), token);
  EXPECT_EQ(run(world, 1, Goal::release), Code::ok);
  pass(world, 100'000);
  EXPECT_TRUE(world.players[2]->member->holds());
  EXPECT_EQ(world.players[1]->member->counts().requeued, 0u);
  EXPECT_EQ(world.players[2]->member->counts().requeued, 0u);
}

TEST(LockTrouble, AHomeThatForgotTheMemberIsAskedOnceMore) {
  for (const Goal first : {Goal::acquire, Goal::try_once}) {
    World world(2, 1, {});
    World::Player& player = *world.players[0];
    player.forgotten = 1;
    ASSERT_EQ(run(world, 0, first), Code::ok);
    pass(world, World::lease_ns / 10);
    player.forgotten = 1;
    EXPECT_EQ(run(world, 0, Goal::renew), Code::ok);
    player.forgotten = 1;
    EXPECT_EQ(run(world, 0, Goal::release), Code::ok);
    EXPECT_EQ(world.home[0] & held, 0u);
    EXPECT_EQ(world.home[1], 0u);
    player.forgotten = 2;  // it does not go on for ever
    EXPECT_EQ(run(world, 0, Goal::try_once), Code::peer_gone);
  }
}

TEST(LockTrouble, ANeighbourThatForgotTheMemberIsAskedOnceMore) {
  World world(2, 1, {});
  ASSERT_EQ(run(world, 0, Goal::acquire), Code::ok);
  World::Player& waiter = *world.players[1];
  begin(world, 1);
  while (waiter.place == Courier::home) {
    if (waiter.executed == waiter.packet.size() && !waiter.packet.empty()) waiter.forgotten = 1;
    step(world, 1);
    world.pass();
  }
  EXPECT_EQ(waiter.forgotten, 0u);
  pass(world, 100'000);
  world.players[0]->forgotten = 1;
  EXPECT_EQ(run(world, 0, Goal::release), Code::ok);
  pass(world, 100'000);
  EXPECT_TRUE(waiter.member->holds());
  EXPECT_EQ(waiter.member->counts().handed, 1u);
}

TEST(LockTrouble, ARenewalOfWhichTheAnswerWasLostIsFoundAgain) {
  for (const Goal next : {Goal::renew, Goal::release}) {
    World world(1, 1, {});
    ASSERT_EQ(run(world, 0, Goal::acquire), Code::ok);
    pass(world, World::lease_ns / 10);
    World::Player& player = *world.players[0];
    player.unanswered = true;
    EXPECT_EQ(run(world, 0, Goal::renew), Code::timed_out);
    player.unanswered = false;
    EXPECT_EQ(run(world, 0, next), Code::ok);
    if (next == Goal::renew) {
      EXPECT_GT(player.member->safe_until_ns(), world.now_ns + World::lease_ns / 2);
      EXPECT_EQ(run(world, 0, Goal::release), Code::ok);
    }
    EXPECT_EQ(world.home[0] & held, 0u);
  }
}

TEST(LockTrouble, ASilentHomeIsNotWaitedForBeyondALease) {
  const std::uint64_t timeout_ns = World::lease_ns / 5;
  for (const bool waits_already : {false, true}) {
    World world(2, 1, {});
    ASSERT_EQ(run(world, 0, Goal::acquire), Code::ok);
    world.players[1]->home_silent = !waits_already;
    const std::uint64_t since_ns = world.now_ns;
    begin(world, 1, timeout_ns);
    pass(world, timeout_ns / 2);
    world.players[1]->home_silent = true;
    while (!world.players[1]->member->step(world.now_ns)) {
      ASSERT_LT(world.now_ns, since_ns + timeout_ns + World::lease_ns + World::lease_ns / 10);
      world.pass();
    }
    EXPECT_EQ(world.players[1]->member->result(), Code::timed_out);
    if (!waits_already) continue;
    // Who only looked on has its place still.
    EXPECT_LT(world.now_ns, since_ns + timeout_ns + World::lease_ns / 2);
    world.players[1]->home_silent = false;
    begin(world, 1);
    pass(world, 50'000);
    EXPECT_EQ(run(world, 0, Goal::release), Code::ok);
    pass(world, 100'000);
    EXPECT_TRUE(world.players[1]->member->holds());
  }
}

}  // namespace
