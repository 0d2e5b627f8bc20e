// Who may move how much in a turn. No process and no clock: the turns are taken by hand, and bytes
// are counted.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "service/clients/hub.hpp"
#include "service/copying/work.hpp"
#include "service/fake.hpp"

namespace haul::service_test {
namespace {

// A client whose service is the test.
class Turns : public testing::Test {
 protected:
  struct Party {
    int table_fd = -1;
    std::byte* table = nullptr;  // as the client sees it
    std::uint8_t* arena = nullptr;
    service::Client* client = nullptr;

    Ring& ring(unsigned index = 0) { return *reinterpret_cast<Ring*>(table + ring_offset(index)); }
    Job copy(std::size_t length) const { return Fake::copy_job(arena + 32 * mib, arena, length); }
    std::uint64_t submit(Job job, unsigned index = 0) {
      EXPECT_TRUE(ring(index).has_room());
      ring(index).publish(job, nullptr);
      return job.seq;
    }
    bool ended(std::uint64_t seq, unsigned index = 0) {
      return State::seq(ring(index).state_word(seq).load()) >= seq;
    }
    std::uint64_t moved() const { return client->tally.mapped_copy_bytes; }
  };

  Party join(unsigned weight = wire::default_weight, unsigned rings = 1) {
    Party party;
    party.table_fd = os::make_sealed("turns-rings", shared_table_bytes);
    party.table =
        static_cast<std::byte*>(os::map_shared(nullptr, shared_table_bytes, party.table_fd, 0));
    auto& board = *reinterpret_cast<Board*>(party.table);
    for (unsigned i = 0; i < rings; ++i) {
      party.ring(i).begin(i, 77);
      board.shared[i / 64].fetch_or(std::uint64_t{1} << i % 64);
    }
    const int arena_fd = os::make_sealed("turns-arena", 64 * mib);
    party.arena = static_cast<std::uint8_t*>(os::map_shared(nullptr, 64 * mib, arena_fd, 0));
    auto made = std::make_unique<service::Client>();
    made->id = ++last_id_;
    made->weight = weight;
    made->table =
        static_cast<std::byte*>(os::map_shared(nullptr, shared_table_bytes, party.table_fd, 0));
    party.client = &hub_.add(std::move(made));
    EXPECT_TRUE(hub_.views.attach(party.client->arena, arena_fd,
                                  reinterpret_cast<std::uintptr_t>(party.arena), 64 * mib));
    os::close_fd(party.table_fd);
    parties_.push_back(party);
    return party;
  }
  void TearDown() override {
    for (const Party& party : parties_) {
      os::unmap(party.table, shared_table_bytes);
      os::unmap(party.arena, 64 * mib);
    }
  }

  service::Options options_;
  service::Hub hub_{options_};
  std::vector<Party> parties_;
  std::uint64_t last_id_ = 1;
};

TEST_F(Turns, ALargeCopyIsOneQuantumATurn) {
  Party large = join(), small = join();
  const std::uint64_t long_one = large.submit(large.copy(30 * mib));
  unsigned turns = 0;
  for (; !large.ended(long_one); ++turns) {
    const std::uint64_t before = large.moved();
    ASSERT_TRUE(service::serve(hub_, *large.client));
    EXPECT_LE(large.moved() - before, 256 * 1024u);
    // Whoever comes meanwhile is done in the turn that follows.
    const std::uint64_t quick = small.submit(small.copy(4096));
    ASSERT_TRUE(service::serve(hub_, *small.client));
    EXPECT_TRUE(small.ended(quick));
    ASSERT_LT(turns, 1000u);
  }
  EXPECT_GE(turns, 120u);
}

TEST_F(Turns, WeightsDecideTheShares) {
  Party light = join(10), heavy = join(40), least = join(1);
  for (Party* party : {&light, &heavy, &least}) {
    for (unsigned i = 0; i < 20; ++i) party->submit(party->copy(10 * mib));
  }
  for (unsigned round = 0; round < 100; ++round) {
    for (Party* party : {&light, &heavy, &least}) service::serve(hub_, *party->client);
  }
  // Mapping a view costs credit as well, once.
  EXPECT_NEAR(static_cast<double>(heavy.moved()) / static_cast<double>(light.moved()), 4, 0.1);
  EXPECT_NEAR(static_cast<double>(light.moved()) / static_cast<double>(least.moved()), 10, 0.5);
}

TEST_F(Turns, ManySmallRequestsAreNoWayAround) {
  Party greedy = join(10, 8);
  for (unsigned ring = 0; ring < 8; ++ring) {
    for (unsigned i = 0; i < 200; ++i) greedy.submit(greedy.copy(1), ring);
  }
  ASSERT_TRUE(service::serve(hub_, *greedy.client));
  EXPECT_GT(greedy.client->tally.requests, 20u);
  EXPECT_LT(greedy.client->tally.requests, 200u);
}

TEST_F(Turns, RingsOfOneClientTakeTurns) {
  Party party = join(10, 2);
  party.submit(party.copy(30 * mib), 0);
  for (unsigned i = 0; i < 20; ++i) {
    const std::uint64_t quick = party.submit(party.copy(100), 1);
    ASSERT_TRUE(service::serve(hub_, *party.client));
    EXPECT_TRUE(party.ended(quick, 1)) << i;
  }
}

TEST_F(Turns, SmallOnesPassALargeOneOfTheirRingButNoFence) {
  Party party = join();
  const std::uint64_t large = party.submit(party.copy(30 * mib));
  ASSERT_TRUE(service::serve(hub_, *party.client));
  const std::uint64_t small = party.submit(party.copy(4096));
  Job job = party.copy(4096);
  job.fence = true;
  const std::uint64_t fenced = party.submit(job);
  const std::uint64_t behind = party.submit(party.copy(4096));
  ASSERT_TRUE(service::serve(hub_, *party.client));
  EXPECT_TRUE(party.ended(small));
  for (unsigned i = 0; i < 20; ++i) service::serve(hub_, *party.client);
  EXPECT_FALSE(party.ended(large));
  EXPECT_FALSE(party.ended(fenced));
  EXPECT_FALSE(party.ended(behind));
  for (unsigned i = 0; i < 200; ++i) service::serve(hub_, *party.client);
  EXPECT_TRUE(party.ended(behind));
}

TEST_F(Turns, QuantaHaveAFloor) {
  EXPECT_EQ(service::quantum_of(10), 256 * 1024);
  EXPECT_EQ(service::quantum_of(100), 2560 * 1024);
  EXPECT_GE(service::quantum_of(1), 16 * 1024);
}

}  // namespace
}  // namespace haul::service_test
