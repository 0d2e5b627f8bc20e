// One rule for the short road and the planner: route() by what the gate shows says the same as
// make_plan() by its inputs, whatever the figures, and at each threshold to the byte.
#include "plan/route.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "plan/plan.hpp"
#include "plan/thresholds.hpp"

namespace haul::plan {
namespace {

constexpr unsigned machines = 2000;

class Draw {
 public:
  bool flip() { return below(2) != 0; }
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  double between(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random_);
  }

 private:
  std::mt19937_64 random_{15};  // NOLINT: the same cases each time
};

// A process as the gate may find it.
Inputs machine(Draw& draw) {
  Inputs inputs;
  inputs.mover = static_cast<MoverState>(draw.below(5));
  inputs.round_trip_ns = draw.flip() ? 0 : draw.between(60, 3000);
  inputs.l2_bytes = std::size_t{1} << (18 + draw.below(5));
  inputs.calibration.remote_line_ns = draw.between(0.05, 3);
  inputs.calibration.hot_line_ns = draw.between(0.2, 1);
  inputs.calibration.cold_line_ns = draw.between(1, 8);
  inputs.service.attached = draw.flip();
  inputs.service.asleep = inputs.service.attached && draw.flip();
  inputs.service.reaches_memory = inputs.service.attached && draw.flip();
  inputs.service.round_trip_ns = draw.flip() ? 0 : draw.between(60, 3000);
  inputs.held = draw.below(10) == 0;
  if (draw.below(4) == 0) inputs.settings.inline_bytes = draw.below(4u << 20);
  const auto setting = draw.below(8);
  inputs.settings.mover_caller = setting == 0;
  inputs.settings.mover_service = setting == 1;
  inputs.settings.mover_thread = setting == 2;
  inputs.thresholds = threshold_set_of(inputs);
  return inputs;
}

// Lengths to the left and the right of whatever may be a border, and some between.
std::vector<std::uint64_t> lengths(const Inputs& inputs, Draw& draw) {
  const ThresholdSet short_road = short_road_of(inputs);
  std::vector<std::uint64_t> found;
  for (const Thresholds& from : {inputs.thresholds.own, inputs.thresholds.mapped, short_road.own,
                                 Thresholds{inputs.thresholds.mapped_asleep_from, 0, 0}}) {
    for (const std::uint64_t border : {from.inline_below, from.mover_from, from.piece_from}) {
      if (border > std::uint64_t{1} << 41) continue;
      for (const std::uint64_t length : {border - 1, border, border + 1}) {
        if (length + 1 > 1) found.push_back(length);
        if (length + 1 > 1) found.push_back(2 * length + draw.below(2));  // a fill's
      }
    }
  }
  for (unsigned i = 0; i < 4; ++i) found.push_back(draw.below(std::uint64_t{1} << (8 + 8 * i)));
  return found;
}

TEST(Route, SaysOnTheShortRoadWhatThePlannerSays) {
  Draw draw;
  unsigned movers_seen[3] = {}, probes = 0;
  for (unsigned i = 0; i < machines; ++i) {
    Inputs inputs = machine(draw);
    const ThresholdSet short_road = short_road_of(inputs);
    for (const std::uint64_t length : lengths(inputs, draw)) {
      const bool mapped = inputs.service.attached && draw.flip();
      RequestFacts& request = inputs.request;
      request = RequestFacts();
      request.operation = draw.below(4) == 0 ? Operation::fill : Operation::copy;
      request.length = length;
      const std::uint64_t bytes = counted_bytes(request.operation, length);
      request.burst_bytes = bytes + (draw.flip() ? 0 : draw.below(4u << 20));
      request.service_reach = mapped                          ? ServiceReach::mapped
                              : inputs.service.reaches_memory ? ServiceReach::kernel
                                                              : ServiceReach::none;
      const auto access = static_cast<Access>(draw.below(3));
      unsigned probed = 0;
      const auto look = [&] {
        ++probed;
        return access;
      };
      const Candidate candidate = !mapped                 ? Candidate::thread
                                  : inputs.service.asleep ? Candidate::sleeping_service
                                                          : Candidate::service;
      const Route route = plan::route(short_road, candidate, bytes, request.burst_bytes, look);
      request.access = access;
      const Plan plan = make_plan(inputs, nullptr);
      SCOPED_TRACE(testing::Message()
                   << "machine " << i << ", length " << length << ", burst " << request.burst_bytes
                   << ", operation " << static_cast<int>(request.operation) << ", mapped " << mapped
                   << ", asleep " << inputs.service.asleep << ", access "
                   << static_cast<int>(access) << ", planned " << name_of(plan.mover) << ", routed "
                   << name_of(route.mover));
      ASSERT_EQ(route.mover == Mover::caller, plan.mover == Mover::caller);
      // (Of a thread that is asked for, the short road knows only that it takes the long one.)
      ASSERT_TRUE(!mapped || inputs.settings.mover_thread || route.mover == plan.mover);
      ASSERT_LE(probed, 1u);
      // The planner's probe: it would not be sent to look where the rule does not ask. (Where it is
      // overruled, by a hold or a setting, it need not look where the rule would.)
      ASSERT_TRUE(probed == 1 || !depends_on_access(inputs));
      ++movers_seen[static_cast<unsigned>(plan.mover)];
      probes += probed;
    }
  }
  for (const unsigned seen : movers_seen) EXPECT_GT(seen, machines);
  EXPECT_GT(probes, machines);
}

TEST(Route, LooksAtTheMemoryBetweenTheThresholdsAlone) {
  const ThresholdSet figures{.own = {100, 1000, 50}};
  unsigned asked = 0;
  const auto route_of = [&](std::uint64_t bytes, std::uint64_t burst, Access access) {
    const Route route = plan::route(figures, Candidate::thread, bytes, burst, [&] {
      ++asked;
      return access;
    });
    return route.reason;
  };
  EXPECT_EQ(route_of(99, 99, Access::in_memory), Reason::small);
  EXPECT_EQ(route_of(1000, 1000, Access::cached), Reason::large);
  EXPECT_EQ(route_of(50, 1000, Access::cached), Reason::large);
  EXPECT_EQ(route_of(49, 1000, Access::in_memory), Reason::small);
  EXPECT_EQ(asked, 0u);
  EXPECT_EQ(route_of(100, 999, Access::in_memory), Reason::in_memory);
  EXPECT_EQ(route_of(100, 999, Access::new_pages), Reason::new_pages);
  EXPECT_EQ(route_of(999, 999, Access::cached), Reason::cached);
  EXPECT_EQ(asked, 3u);
}

TEST(Route, ASleepingServiceIsWokenByLengthAlone) {
  const ThresholdSet figures{.own = always, .mapped = {10, 100, 10}, .mapped_asleep_from = 1000};
  const auto route_of = [&](std::uint64_t bytes) {
    return plan::route(figures, Candidate::sleeping_service, bytes, 1u << 20,
                       [] { return Access::in_memory; })
        .mover;
  };
  EXPECT_EQ(route_of(999), Mover::caller);
  EXPECT_EQ(route_of(1000), Mover::service);
}

TEST(Route, AFillCountsHalf) {
  EXPECT_EQ(counted_bytes(Operation::copy, 1001), 1001u);
  EXPECT_EQ(counted_bytes(Operation::fill, 1001), 500u);
}

TEST(Route, WakingIsWorthWhatAnAwakeMoverWouldHaveTaken) {
  const Thresholds worth{100, 1000, 0};
  const auto near = [] { return Access::cached; };
  const auto far = [] { return Access::in_memory; };
  EXPECT_FALSE(is_worth_waking(worth, 99, far));
  EXPECT_TRUE(is_worth_waking(worth, 100, far));
  EXPECT_FALSE(is_worth_waking(worth, 999, near));
  EXPECT_TRUE(is_worth_waking(worth, 1000, near));
}

}  // namespace
}  // namespace haul::plan
