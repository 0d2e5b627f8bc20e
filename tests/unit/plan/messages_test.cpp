// The limits are pure arithmetic on the calibration's figures.
#include "plan/messages.hpp"
#include "sizes.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <vector>

namespace haul::plan {
namespace {

Calibration machine(double round_trip_ns, double line_ns) {
  Calibration figures;
  figures.round_trip_ns = round_trip_ns;
  figures.hot_line_ns = line_ns / 2;
  figures.l3_line_ns = line_ns * 1.5;
  return figures;
}

TEST(EagerBytes, AreWhereAskingCostsAsMuchAsCopyingOnceMore) {
  // 1600 ns for asking; 32768 bytes are 512 lines, 1600 ns at 3.1 each, a quarter of what a copy
  // takes.
  EXPECT_EQ(eager_bytes(machine(100, 12.4)), 32768u);
  EXPECT_EQ(eager_bytes(machine(100, 12.6)), 16384u);
  EXPECT_EQ(eager_bytes(machine(1800, 12.4)), 65536u);
}

TEST(EagerBytes, GrowWithTheDistanceAndWithTheSpeedOfCopying) {
  std::size_t last = 0;
  for (double round_trip = 0; round_trip < 5000; round_trip += 50) {
    const std::size_t bytes = eager_bytes(machine(round_trip, 2));
    EXPECT_GE(bytes, last);
    last = bytes;
  }
  for (double line = 0.1; line < 50; line *= 1.3) {
    const std::size_t bytes = eager_bytes(machine(200, line));
    EXPECT_LE(bytes, last);
    last = bytes;
  }
}

TEST(EagerBytes, StayWithinTheirLimitsWhateverTheFigures) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double round_trip : {-1.0, 0.0, 1.0, 400.0, 1e9, 1e300, infinity}) {
    for (const double line : {-1.0, 0.0, 1e-300, 1.0, 1e300, infinity}) {
      const std::size_t bytes = eager_bytes(machine(round_trip, line));
      EXPECT_GE(bytes, least_eager_bytes);
      EXPECT_LE(bytes, most_eager_bytes);
      EXPECT_TRUE(std::has_single_bit(bytes));
    }
  }
}

Calibration with_kernel(double ring_line_ns, double call_ns, double line_ns) {
  Calibration figures;
  figures.l3_line_ns = ring_line_ns / 2;
  figures.remote_line_ns = ring_line_ns / 2;
  figures.kernel_call_ns = call_ns;
  figures.kernel_line_ns = line_ns;
  return figures;
}

TEST(KernelBytes, AreTriedWhereACallIsPaidByWhatItsLinesSave) {
  const std::size_t little = 64 * kib;
  EXPECT_EQ(kernel_bytes(with_kernel(10, 1024, 16), little).try_from, 32 * kib);  // 512 lines, 2 ns
  EXPECT_EQ(kernel_bytes(with_kernel(10, 1026, 16), little).try_from, 36 * kib);
  EXPECT_EQ(kernel_bytes(with_kernel(10, 1024, 16), little).from, 32 * kib);
  EXPECT_EQ(kernel_bytes(with_kernel(10, 0, 16), little).try_from, 0u);
}

TEST(KernelBytes, AreTheUsualWayWhereACoresCacheDoesNotHoldBothBuffers) {
  EXPECT_EQ(kernel_bytes(with_kernel(10, 1024, 16), 2 * mib).from, mib);
  EXPECT_EQ(kernel_bytes(with_kernel(10, 1024, 16), 0).from, 512 * kib);
}

// Whatever the figures, which are of short messages: NaN, a kernel whose lines save nothing, one
// whose call costs more than the lines of a core's cache save, and those that nobody has measured.
TEST(KernelBytes, AreTriedBeyondACoresCache) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double no_number = std::numeric_limits<double>::quiet_NaN();
  std::vector<Calibration> all = {with_kernel(10, 1000, 20), with_kernel(1.25, 1000, 4.2),
                                  with_kernel(10, 1e6, 16), with_kernel(no_number, 10, 1),
                                  Calibration()};
  for (const double line : {-1.0, 0.0, 1e-300, 1.0, 1e300, infinity, no_number})
    for (const double call : {1e300, infinity}) all.push_back(with_kernel(10, call, line));
  for (const Calibration& figures : all) {
    EXPECT_EQ(kernel_bytes(figures, 512 * kib).try_from, 512 * kib);
    EXPECT_EQ(kernel_bytes(figures, 512 * kib).from, 2 * mib);
    EXPECT_EQ(kernel_bytes(figures, 0).try_from, mib);
  }
}

TEST(StreamBytes, AreAQuarterOfTheLastLevelCache) {
  EXPECT_EQ(stream_from_bytes(32 * mib), 8 * mib);
  EXPECT_EQ(stream_from_bytes(0), SIZE_MAX);
}

HaulPrivateRing measured_ring(std::size_t part_bytes) {
  HaulPrivateRing ring;
  ring.measured_at_s = 1795452138;
  ring.eager_bytes = std::size_t{32} << 10;
  ring.part_bytes = part_bytes;
  ring.owns_ahead = false;
  return ring;
}

TEST(RingsBy, AreUsualOnesWhereNothingWasMeasured) {
  const Calibration figures = machine(100, 12.6);
  const Rings rings = rings_by(figures, {}, {});
  for (const HaulPrivateRing& ring : {rings.near, rings.far}) {
    EXPECT_EQ(ring.eager_bytes, eager_bytes(figures));
    EXPECT_EQ(ring.part_bytes, HaulPrivateRing{}.part_bytes);
    EXPECT_EQ(ring.measured_at_s, 0u);
  }
}

TEST(RingsBy, AreAsMeasuredAndOneStandsForBothWhereItIsTheOnlyOne) {
  const Rings both = rings_by({}, {measured_ring(4096), measured_ring(16384)}, {});
  EXPECT_EQ(both.near.part_bytes, 4096u);
  EXPECT_EQ(both.far.part_bytes, 16384u);
  EXPECT_EQ(both.far.eager_bytes, 32768u);
  EXPECT_FALSE(both.near.owns_ahead);
  const Rings near = rings_by({}, {measured_ring(4096), {}}, {});
  EXPECT_EQ(near.far.part_bytes, 4096u);
  const Rings far = rings_by({}, {{}, measured_ring(2048)}, {});
  EXPECT_EQ(far.near.part_bytes, 2048u);
}

TEST(RingsBy, DoWhatTheUserWantsInPlaceOfWhatWasMeasured) {
  WantedRing wanted;
  wanted.part_bytes = 1024;
  wanted.cell_from_bytes = 0;
  wanted.copies_out = HaulPrivateCopy::vectors;
  wanted.piece_bytes = 8192;
  wanted.owns_ahead = true;
  wanted.demotes = false;
  const Rings rings = rings_by({}, {measured_ring(4096), measured_ring(16384)}, wanted);
  for (const HaulPrivateRing& ring : {rings.near, rings.far}) {
    EXPECT_EQ(ring.eager_bytes, 32768u);
    EXPECT_EQ(ring.part_bytes, 1024u);
    EXPECT_EQ(ring.cell_from_bytes, 0u);
    EXPECT_EQ(ring.copies_in, HaulPrivateCopy::strings);
    EXPECT_EQ(ring.copies_out, HaulPrivateCopy::vectors);
    EXPECT_EQ(ring.piece_bytes, 8192u);
    EXPECT_TRUE(ring.owns_ahead);
    EXPECT_FALSE(ring.demotes);
  }
  wanted.eager_bytes = 4096;
  EXPECT_EQ(rings_by({}, {}, wanted).far.eager_bytes, 4096u);
}

TEST(RingCost, IsThatOfTheRingThatWasMeasured) {
  const Calibration figures = with_kernel(10, 1000, 12);
  HaulPrivateRing ring;
  ring.message_ns[3] = 2000 + 4096 * 5;
  ring.message_ns[4] = 2000 + 16384 * 5;
  EXPECT_EQ(ring_cost(figures, ring).line_ns, ring_cost(figures).line_ns) << "it was not";
  ring.measured_at_s = 1795452138;
  EXPECT_NEAR(ring_cost(figures, ring).line_ns, 5, 1e-9);
  EXPECT_NEAR(ring_cost(figures, ring).asking_ns, 2000, 1e-6);
  // Times that contradict each other say nothing.
  ring.message_ns[4] = ring.message_ns[3];
  EXPECT_EQ(ring_cost(figures, ring).line_ns, ring_cost(figures).line_ns);
}

}  // namespace
}  // namespace haul::plan
