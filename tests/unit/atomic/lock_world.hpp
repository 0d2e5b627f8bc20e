// Members of a lock in one thread and in made-up time: packets are executed operation by operation
// at random moments, answers are late or lost, members are paused or die.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "atomic/lock/member.hpp"

namespace haul::atomics::lock::test {

struct Weather {
  unsigned lost_per_mille = 0;    // packets of which no answer comes, executed or not
  unsigned paused_per_mille = 0;  // of steps after which a member sleeps for up to two leases
  std::uint64_t step_ns = 1'000, flight_ns = 5'000;
};

class World {
 public:
  static constexpr std::uint64_t lease_ns = 10'000'000;

  struct Player final : Courier {
    World* world = nullptr;
    unsigned rank = 0;
    std::uint64_t words[3] = {};
    std::unique_ptr<Member> member;
    bool dead = false;
    bool unreachable = false;
    unsigned forgotten = 0;    // so many packets to come meet nobody who knows this member
    bool unanswered = false;   // packets are executed, and their answers lost
    bool home_silent = false;  // packets to the home go nowhere
    std::uint64_t asleep_until_ns = 0;

    // The packet that is out.
    int place = 0;
    std::vector<haul_atomic_operation> packet;
    std::size_t executed = 0;
    bool stop = false, lost = false;
    Code failure = Code::ok;
    std::uint64_t next_ns = 0, answer_ns = 0;

    void send(int to, const haul_atomic_operation* operations, unsigned count) noexcept override {
      place = to;
      packet.assign(operations, operations + count);
      executed = 0;
      stop = false;
      lost = world->chance(world->weather.lost_per_mille) ||
             (to >= 0 && world->players[static_cast<std::size_t>(to)]->unreachable);
      // A lost packet may still be executed, long after it was given up.
      next_ns = world->now_ns + world->random(world->weather.flight_ns) +
                (lost && world->chance(500) ? world->random(2 * lease_ns) : 0);
      answer_ns = 0;
      lost = lost || forgotten != 0;
      failure = forgotten != 0 ? Code::peer_gone : Code::timed_out;
      if (home_silent && to == home) next_ns = ~std::uint64_t{0};
      if (forgotten != 0) {
        --forgotten;
        answer_ns = world->now_ns + world->random(world->weather.flight_ns);
      } else if (lost) {
        answer_ns = world->now_ns + lease_ns / 4;
        world->strays_.push_back({to, packet, world->chance(500) ? next_ns : ~std::uint64_t{0}});
      }
    }
    bool answered(haul_atomic_operation* operations, unsigned count, Code* code) noexcept override {
      if (answer_ns == 0 || world->now_ns < answer_ns) return false;
      *code = lost || unanswered ? failure : Code::ok;
      for (unsigned i = 0; i < count; ++i) operations[i] = packet[i];
      answer_ns = 0;
      packet.clear();
      return true;
    }
    bool has_left() const noexcept override { return true; }
    void give_up() noexcept override {
      world->strays_.push_back(
          {place, {packet.begin() + static_cast<std::ptrdiff_t>(executed), packet.end()}, next_ns});
      answer_ns = 0;
      packet.clear();
    }
    bool doubt(int) noexcept override { return false; }
    std::uint64_t clock_ns() const noexcept override { return world->now_ns; }
  };

  World(unsigned count, unsigned seed, const Weather& weather_now)
      : weather(weather_now), random_(seed) {
    for (unsigned i = 0; i < count; ++i) add(i, count);
  }

  void add(unsigned rank, unsigned count) {
    if (rank == players.size()) players.push_back(std::make_unique<Player>());
    Player& player = *players[rank];
    player.world = this;
    player.rank = rank;
    MemberFacts facts;
    facts.rank = rank;
    facts.count = count;
    facts.lease_ns = lease_ns;
    facts.first_tag = 1 + random(1'000'000'000);
    player.member = std::make_unique<Member>(player, facts, player.words);
  }

  bool chance(unsigned per_mille) { return random(1000) < per_mille; }
  std::uint64_t random(std::uint64_t below) { return below == 0 ? 0 : random_() % below; }

  // Time goes on a little, and packets are executed. True if anything happened at home.
  void pass() {
    now_ns += 1 + random(weather.step_ns);
    for (auto& player : players) execute(*player);
    for (std::size_t i = 0; i < strays_.size(); ++i) {
      if (now_ns < strays_[i].at_ns) continue;
      for (haul_atomic_operation& operation : strays_[i].packet) {
        if (!apply(strays_[i].place, operation)) break;
      }
      strays_.erase(strays_.begin() + static_cast<std::ptrdiff_t>(i--));
    }
  }

  Weather weather;
  std::vector<std::unique_ptr<Player>> players;
  std::uint64_t home[2] = {};
  std::uint64_t now_ns = 1'000'000'000;
  std::vector<unsigned> order;  // of the fetch&writes on `tail`
  bool state_shrank = false;

 private:
  struct Stray {
    int place;
    std::vector<haul_atomic_operation> packet;
    std::uint64_t at_ns;
  };

  void execute(Player& player) {
    if (player.lost || player.packet.empty() || player.answer_ns != 0) return;
    if (now_ns < player.next_ns) return;
    haul_atomic_operation& operation = player.packet[player.executed];
    if (player.stop) {
      operation.status = static_cast<std::int32_t>(Code::again);
      operation.old = 0;
    } else if (!apply(player.place, operation)) {
      player.stop = true;
    }
    player.next_ns = now_ns + random(300);
    if (++player.executed == player.packet.size()) {
      player.answer_ns = now_ns + 1 + random(weather.flight_ns);
    }
  }

  // False: what is linked behind it is not executed.
  bool apply(int place, haul_atomic_operation& operation) {
    std::uint64_t* words =
        place == Courier::home ? home : players[static_cast<std::size_t>(place)]->words;
    std::uint64_t& word = words[operation.address / 8];
    const std::uint64_t before = home[0];
    operation.status = 0;
    operation.old = word;
    switch (operation.code) {
      case HAUL_ATOMIC_WRITE:
      case HAUL_ATOMIC_SWAP: word = operation.operand; break;
      case HAUL_ATOMIC_OR: word |= operation.operand; break;
      case HAUL_ATOMIC_CAS:
        if (word == operation.compare) word = operation.operand;
        break;
      default: break;
    }
    if (place == Courier::home && operation.code == HAUL_ATOMIC_SWAP) {
      order.push_back(rank_of(operation.operand));
    }
    if (token_of(home[0]) < token_of(before)) state_shrank = true;
    return (operation.flags & HAUL_ATOMIC_LINK) == 0 || operation.old == operation.compare;
  }

  std::mt19937_64 random_;
  std::vector<Stray> strays_;
};

using Goal = Member::Goal;
inline constexpr std::uint64_t for_ever = ~std::uint64_t{0};

// Runs one member's operation to its end, the others stepping along.
inline Code run(World& world, unsigned rank, Goal goal, std::uint64_t timeout_ns = for_ever) {
  Member& member = *world.players[rank]->member;
  const std::uint64_t until = timeout_ns == for_ever ? for_ever : world.now_ns + timeout_ns;
  EXPECT_EQ(member.begin(goal, world.now_ns, until), Code::ok);
  for (unsigned i = 0; i < 1'000'000; ++i) {
    if (member.step(world.now_ns)) return member.result();
    for (auto& other : world.players) {
      if (!other->dead && other->rank != rank) other->member->step(world.now_ns);
    }
    world.pass();
  }
  ADD_FAILURE() << "no end";
  return Code::io;
}

inline void begin(World& world, unsigned rank, std::uint64_t timeout_ns = for_ever) {
  Member& member = *world.players[rank]->member;
  const std::uint64_t until = timeout_ns == for_ever ? for_ever : world.now_ns + timeout_ns;
  ASSERT_EQ(member.begin(Goal::acquire, world.now_ns, until), Code::ok);
}

inline void pass(World& world, std::uint64_t ns) {
  for (const std::uint64_t end = world.now_ns + ns; world.now_ns < end;) {
    for (auto& player : world.players) {
      if (!player->dead) player->member->step(world.now_ns);
    }
    world.pass();
  }
}

}  // namespace haul::atomics::lock::test
