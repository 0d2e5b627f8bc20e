// How rings are calibrated: the pair that exchanges messages is real in its own tests, and in those
// of the race a machine that the test makes up.
#include "cli/mpi/rings/ring_race.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "base/machine/topology.hpp"
#include "base/os/os.hpp"
#include "sizes.hpp"

namespace haul::cli {
namespace {

// Messages take as long as the test says.
class MadeUpPair final : public RingPair {
 public:
  using Cost = std::function<double(const HaulPrivateRing&, const RingRun&)>;
  explicit MadeUpPair(Cost cost) : cost_(std::move(cost)) {}

  void write_as(const HaulPrivateRing& ring) override { ring_ = ring; }
  double exchange(const RingRun& run) override {
    EXPECT_GT(run.rounds, 0u);
    EXPECT_LE(run.bytes, most_bytes);
    ++exchanges;
    return cost_(ring_, run);
  }
  double ran_share() const override { return share; }

  unsigned exchanges = 0;
  double share = 1;

 private:
  Cost cost_;
  HaulPrivateRing ring_;
};

std::optional<HaulPrivateRing> race(MadeUpPair& pair) {
  double last = 0;
  const auto best = race_rings(pair, [&](double share) {
    EXPECT_GE(share, last);
    EXPECT_LE(share, 1);
    last = share;
  });
  return best;
}

double plain_ns(const RingRun& run) {
  return 100 + static_cast<double>(run.bytes) / 10;
}

TEST(RingRace, KeepsTheUsualRingWhereNothingMatters) {
  MadeUpPair pair([](const HaulPrivateRing&, const RingRun& run) { return plain_ns(run); });
  const auto best = race(pair);
  ASSERT_TRUE(best);
  const HaulPrivateRing usual;
  EXPECT_EQ(best->part_bytes, usual.part_bytes);
  EXPECT_EQ(best->eager_bytes, usual.eager_bytes);
  EXPECT_EQ(best->cell_from_bytes, usual.cell_from_bytes);
  EXPECT_EQ(best->piece_bytes, usual.piece_bytes);
  EXPECT_EQ(best->owns_ahead, usual.owns_ahead);
  EXPECT_EQ(best->demotes, usual.demotes);
  EXPECT_NEAR(static_cast<double>(best->measured_at_s), static_cast<double>(os::unix_time_s()), 60);
  for (unsigned size = 0; size < HaulPrivateRing::size_count; ++size)
    EXPECT_EQ(best->message_ns[size], plain_ns({HaulPrivateRing::bytes_of(size)}));
}

TEST(RingRace, FindsEachAnswerOfAMachineThatHasOne) {
  MadeUpPair pair([](const HaulPrivateRing& ring, const RingRun& run) {
    double ns = plain_ns(run);
    if (run.bytes <= 64 * kib && ring.part_bytes != 4 * kib) ns *= 1.2;
    if (run.bytes <= 64 * kib && ring.cell_from_bytes != 512) ns *= 1.2;
    if (run.bytes <= 64 * kib && ring.copies_out != HaulPrivateCopy::vectors) ns *= 1.2;
    if (run.bytes <= 64 * kib && ring.copies_in != HaulPrivateCopy::prefetching) ns *= 1.2;
    if (ring.owns_ahead) ns *= 1.3;
    if (run.bytes <= 2 * kib && ring.demotes) ns *= 1.4;
    if (run.bytes > 16 * kib && ring.eager_bytes >= run.bytes) ns *= 1.2;
    if (run.bytes > 64 * kib && ring.piece_bytes != 16 * kib) ns *= 1.2;
    return ns;
  });
  const auto best = race(pair);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->part_bytes, 4 * kib);
  EXPECT_EQ(best->cell_from_bytes, 512u);
  EXPECT_EQ(best->copies_in, HaulPrivateCopy::prefetching);
  EXPECT_EQ(best->copies_out, HaulPrivateCopy::vectors);
  EXPECT_FALSE(best->owns_ahead);
  EXPECT_FALSE(best->demotes);
  EXPECT_EQ(best->eager_bytes, 16 * kib);
  EXPECT_EQ(best->piece_bytes, 16 * kib);
}

// Each repeat differs by half, and a few take ten times as long.
TEST(RingRace, IsNotMisledByNoise) {
  std::uint64_t state = 1;
  MadeUpPair pair([&](const HaulPrivateRing& ring, const RingRun& run) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto random = static_cast<unsigned>(state >> 40) % 1000;
    double ns = plain_ns(run) * (ring.part_bytes == 2 * kib ? 0.5 : 1);
    ns *= 1 + 0.02 * (random % 10) / 10.0;
    return random < 20 ? ns * 10 : ns;
  });
  const auto best = race(pair);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->part_bytes, 2 * kib);
  EXPECT_TRUE(best->owns_ahead);
  EXPECT_TRUE(best->demotes);
}

TEST(RingRace, GivesNothingWhereMessagesGoWrong) {
  unsigned left = 20;
  MadeUpPair pair(
      [&](const HaulPrivateRing&, const RingRun& run) { return left-- == 0 ? 0 : plain_ns(run); });
  EXPECT_FALSE(race(pair));
  EXPECT_EQ(pair.exchanges, 21u);
}

TEST(RingRace, GivesNothingWhereTheCpusAreBusy) {
  MadeUpPair pair([](const HaulPrivateRing&, const RingRun& run) { return plain_ns(run); });
  pair.share = 0.5;
  EXPECT_FALSE(race(pair));
}

// All sizes by all rings; false where an exchange gives nothing: its bytes are wrong, or the CPUs
// are so busy that it has not ended within a second.
bool exchanges_all(unsigned first, unsigned last) {
  const auto pair = RingPair::make(first, last);
  if (pair == nullptr) return false;
  HaulPrivateRing small;
  small.part_bytes = 1 * kib;
  small.piece_bytes = 4 * kib;
  small.eager_bytes = 4 * kib;
  small.owns_ahead = small.demotes = false;
  HaulPrivateRing large;
  large.part_bytes = 32 * kib;
  large.cell_from_bytes = 0;
  large.piece_bytes = 32 * kib;
  for (const HaulPrivateRing& ring : {HaulPrivateRing{}, small, large}) {
    pair->write_as(ring);
    for (const std::size_t bytes :
         {std::size_t{1}, 32 * kib + 1, 64 * kib, 200 * kib, RingPair::most_bytes}) {
      for (const bool off_cache : {false, true})
        if (!(pair->exchange({bytes, 3, off_cache}) > 0)) return false;
    }
  }
  return pair->ran_share() > 0;
}

TEST(RingPair, ExchangesMessagesOfAllSizesByAnyRing) {
  const auto topology = std::make_unique<Expected<Topology>>(read_topology(""));
  ASSERT_TRUE(*topology);
  const unsigned first = (*topology)->allowed[0].cpu;
  const unsigned last = (*topology)->allowed[(*topology)->allowed_count - 1].cpu;
  // (On a thread that it may bind.)
  bool all = false;
  std::thread measuring([&] {
    for (unsigned tries = 0; tries < 10 && !all; ++tries) all = exchanges_all(first, last);
  });
  measuring.join();
  EXPECT_TRUE(all);
}

}  // namespace
}  // namespace haul::cli
