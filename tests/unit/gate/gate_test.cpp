// The gate: what each state of the mover tells a submit.
#include "gate/gate.hpp"

#include <gtest/gtest.h>

#include "plan/thresholds.hpp"

namespace haul {
namespace {

constexpr std::uint64_t never = UINT64_MAX;

class GateTest : public testing::Test {
 protected:
  void SetUp() override {
    set_calibration(plan::Calibration{true, 110, 30, 10'000, 60'000, 0.47, 0.95, 2.5, 0.29});
    set_round_trip(110);
  }
  void TearDown() override { set_mover_state(plan::MoverState::none); }

  static std::uint64_t below() { return gate.own.inline_below; }
  static std::uint64_t from() { return gate.own.mover_from; }
  static std::uint64_t worth() { return gate.worth.mover_from; }
};

TEST_F(GateTest, AnAwakeMoverTakesWhatPays) {
  set_mover_state(plan::MoverState::awake);
  EXPECT_LT(below(), from());
  EXPECT_LT(from(), 4u << 20);
  EXPECT_LE(gate.own.piece_from, from());
  EXPECT_EQ(worth(), never) << "nothing counts towards waking it";
}

TEST_F(GateTest, ASleepingOneTakesLessAndCountsWhatItWouldHaveTaken) {
  set_mover_state(plan::MoverState::awake);
  const std::uint64_t awake_from = from(), awake_below = below();
  set_mover_state(plan::MoverState::asleep);
  EXPECT_GT(from(), awake_from);
  EXPECT_EQ(worth(), awake_from);
  EXPECT_EQ(gate.worth.inline_below, awake_below);
}

TEST_F(GateTest, BeforeTheFirstStartEveryLargeCopyCounts) {
  set_mover_state(plan::MoverState::none);
  EXPECT_EQ(worth(), 64u << 10);
}

TEST_F(GateTest, WithoutAMoverAllIsInline) {
  for (const auto state : {plan::MoverState::denied, plan::MoverState::impossible}) {
    set_mover_state(state);
    EXPECT_EQ(below(), never);
    EXPECT_EQ(from(), never);
    EXPECT_EQ(worth(), 64u << 10) << "who copies much looks for the node's service";
  }
}

TEST_F(GateTest, AServiceOpensItForWhatIsMappedAlone) {
  std::atomic<std::uint32_t> asleep{0};
  set_mover_state(plan::MoverState::denied);
  set_service(&asleep, false);
  EXPECT_EQ(below(), never);
  EXPECT_EQ(worth(), never) << "there is nothing more to look for";
  EXPECT_LT(gate.mapped.mover_from, 1u << 20);
  EXPECT_LE(gate.mapped.inline_below, gate.mapped.mover_from);
  EXPECT_GT(gate.mapped_asleep_from, gate.mapped.mover_from);
  set_service(&asleep, true);
  EXPECT_EQ(below(), plan::kernel_reach_from_bytes) << "private memory, through the kernel";
  set_mover_state(plan::MoverState::awake);
  EXPECT_LT(from(), never) << "a thread of this process is faster";
  set_service(nullptr, false);
  EXPECT_EQ(gate.mapped.mover_from, never);
}

TEST_F(GateTest, HeldItIsShutAndReleasedItIsAsBefore) {
  set_mover_state(plan::MoverState::awake);
  const std::uint64_t open_from = from();
  hold_gate(UINT64_MAX);
  EXPECT_TRUE(gate.held.load());
  EXPECT_EQ(below(), never);
  EXPECT_EQ(from(), never);
  release_gate(After::open);
  EXPECT_FALSE(gate.held.load());
  EXPECT_EQ(from(), open_from);
}

// Threads that fork at once; and nobody who sets a figure waits for them.
TEST_F(GateTest, HeldByTwoItOpensWithTheLast) {
  set_mover_state(plan::MoverState::awake);
  const std::uint64_t open_from = from();
  hold_gate(UINT64_MAX);
  hold_gate(1);
  release_gate(After::open);
  EXPECT_TRUE(gate.held.load());
  set_service_round_trip(300);
  set_round_trip(110);
  EXPECT_EQ(from(), never);
  release_gate(After::open);
  EXPECT_FALSE(gate.held.load());
  EXPECT_EQ(from(), open_from);
}

TEST_F(GateTest, InAChildNobodyHoldsIt) {
  set_mover_state(plan::MoverState::awake);
  hold_gate(UINT64_MAX);
  hold_gate(UINT64_MAX);
  reset_gate_in_child();
  EXPECT_FALSE(gate.held.load());
  EXPECT_EQ(gate.state.load(), plan::MoverState::none);
  release_gate(After::open);  // of a frame that came over with the fork
  EXPECT_FALSE(gate.held.load());
}

TEST_F(GateTest, DistanceMovesTheThresholds) {
  set_mover_state(plan::MoverState::awake);
  const std::uint64_t near_below = below();
  set_round_trip(400);
  EXPECT_GT(below(), near_below);
}

TEST_F(GateTest, ThePlannersInputsAreThoseOfTheGate) {
  set_mover_state(plan::MoverState::awake);
  plan::Inputs inputs;
  fill_inputs(&inputs);
  EXPECT_EQ(inputs.mover, plan::MoverState::awake);
  EXPECT_EQ(inputs.thresholds.own.inline_below, below());
  EXPECT_EQ(inputs.thresholds.own.mover_from, from());
  EXPECT_EQ(inputs.round_trip_ns, 110);
}

TEST_F(GateTest, ItShowsTheShortRoadWhatThePlannerComputes) {
  std::atomic<std::uint32_t> asleep{0};
  set_service(&asleep, true);
  for (const auto state : {plan::MoverState::none, plan::MoverState::awake,
                           plan::MoverState::asleep, plan::MoverState::denied}) {
    set_mover_state(state);
    plan::Inputs inputs;
    fill_inputs(&inputs);
    const plan::ThresholdSet expected = plan::short_road_of(inputs);
    EXPECT_EQ(gate.own.inline_below, expected.own.inline_below);
    EXPECT_EQ(gate.own.mover_from, expected.own.mover_from);
    EXPECT_EQ(gate.own.piece_from, expected.own.piece_from);
    EXPECT_EQ(gate.worth.inline_below, expected.worth.inline_below);
    EXPECT_EQ(gate.worth.mover_from, expected.worth.mover_from);
    EXPECT_EQ(gate.mapped.inline_below, expected.mapped.inline_below);
    EXPECT_EQ(gate.mapped.mover_from, expected.mapped.mover_from);
    EXPECT_EQ(gate.mapped.piece_from, expected.mapped.piece_from);
    EXPECT_EQ(gate.mapped_asleep_from, expected.mapped_asleep_from);
  }
  set_service(nullptr, false);
}

}  // namespace
}  // namespace haul
