// The planner is pure: these tables are its specification.
#include "plan/plan.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "plan/thresholds.hpp"

namespace haul::plan {
namespace {

Inputs near_machine() {
  Inputs inputs;
  inputs.engine_count = 3;
  inputs.engines[0] = EngineView{"cpu", true, true, false, true, false};
  inputs.engines[1] = EngineView{"cma", true, true, true, true, false};
  inputs.engines[2] = EngineView{"fault", true, true, false, false, false};
  inputs.mover = MoverState::awake;
  inputs.calibration = Calibration{true, 110, 30, 10000, 60000, 0.47, 0.95, 2.5, 0.29};
  inputs.thresholds.own = thresholds_of(inputs);
  return inputs;
}

bool mentions(const Reasons& reasons, const char* text) {
  for (unsigned i = 0; i < reasons.count; ++i) {
    if (std::strstr(reasons.text[i], text) != nullptr) return true;
  }
  return false;
}

TEST(Plan, TheThresholdDividesCallerFromThread) {
  Inputs inputs = near_machine();
  ASSERT_GT(inputs.thresholds.own.mover_from, 16u << 10);
  ASSERT_LT(inputs.thresholds.own.mover_from, 1u << 20);
  inputs.request.length = inputs.thresholds.own.mover_from - 1;
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::caller);
  inputs.request.length = inputs.thresholds.own.mover_from;
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::thread);
}

TEST(Plan, EveryLengthAboveTheThresholdPays) {
  for (const double remote : {0.1, 0.29, 0.5, 0.9, 1.5, 2.4, 3.0}) {
    Inputs inputs = near_machine();
    inputs.calibration.remote_line_ns = remote;
    const std::uint64_t threshold = thresholds_of(inputs).mover_from;
    if (threshold == UINT64_MAX) {
      EXPECT_GE(remote, 2.4);
      continue;
    }
    // The caller's least cost at a length is the nearest level's that both sides fit.
    for (std::uint64_t length = threshold; length < 1u << 28; length = length * 5 / 4) {
      const double line = length <= inputs.l2_bytes / 2   ? inputs.calibration.hot_line_ns
                          : length <= inputs.l3_bytes / 2 ? inputs.calibration.l3_line_ns
                                                          : inputs.calibration.cold_line_ns;
      EXPECT_GT(line, remote) << length;
    }
  }
}

TEST(Plan, PiecesThatTogetherAreLargeAreHandedOver) {
  Inputs inputs = near_machine();
  inputs.request.length = inputs.thresholds.own.piece_from;
  ASSERT_LT(inputs.request.length, inputs.thresholds.own.mover_from);
  inputs.request.burst_bytes = inputs.thresholds.own.mover_from - 1;
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::caller);
  inputs.request.burst_bytes = inputs.thresholds.own.mover_from;
  Reasons reasons;
  EXPECT_EQ(make_plan(inputs, &reasons).mover, Mover::thread);
  EXPECT_TRUE(mentions(reasons, "since it last looked"));
  inputs.request.length = inputs.thresholds.own.piece_from - 1;
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::caller);
}

TEST(Plan, ASourceInMemoryIsHandedOverSooner) {
  Inputs inputs = near_machine();
  EXPECT_LT(inputs.thresholds.own.inline_below, inputs.thresholds.own.mover_from);
  inputs.request.length = inputs.thresholds.own.mover_from - 1;
  Reasons reasons;
  EXPECT_EQ(make_plan(inputs, &reasons).mover, Mover::caller);
  EXPECT_TRUE(mentions(reasons, "but it is cached"));
  inputs.request.access = Access::in_memory;
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::thread);
  inputs.request.length = inputs.thresholds.own.inline_below - 1;
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::caller);
}

TEST(Plan, ADestinationWithoutPagesIsHandedOverSooner) {
  Inputs inputs = near_machine();
  inputs.request.length = inputs.thresholds.own.inline_below;
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::caller);
  inputs.request.access = Access::new_pages;
  Reasons reasons;
  EXPECT_EQ(make_plan(inputs, &reasons).mover, Mover::thread);
  EXPECT_TRUE(mentions(reasons, "for a destination without pages"));
  EXPECT_TRUE(mentions(reasons, "makes them first"));
}

TEST(Plan, DistantCoresRaiseTheThreshold) {
  Inputs inputs = near_machine();
  const std::uint64_t near_threshold = thresholds_of(inputs).mover_from;
  inputs.round_trip_ns = 300;
  EXPECT_GT(thresholds_of(inputs).mover_from, near_threshold);
  inputs.round_trip_ns = 110 * 20;
  EXPECT_EQ(thresholds_of(inputs).mover_from, UINT64_MAX);
  inputs.thresholds.own = thresholds_of(inputs);
  inputs.request.length = 64u << 20;
  Reasons reasons;
  EXPECT_EQ(make_plan(inputs, &reasons).mover, Mover::caller);
  EXPECT_TRUE(mentions(reasons, "never pays"));
}

TEST(Plan, ASleepingMoverMustBeWorthItsWaking) {
  Inputs inputs = near_machine();
  const std::uint64_t awake = thresholds_of(inputs).mover_from;
  inputs.mover = MoverState::asleep;
  const std::uint64_t asleep = thresholds_of(inputs).mover_from;
  inputs.mover = MoverState::none;
  EXPECT_GT(asleep, awake);
  EXPECT_GT(thresholds_of(inputs).mover_from, asleep);
}

TEST(Plan, DefaultsAreCautious) {
  Inputs inputs = near_machine();
  const std::uint64_t measured = thresholds_of(inputs).mover_from;
  inputs.calibration = Calibration{};
  EXPECT_GT(thresholds_of(inputs).mover_from, measured);
}

struct Case {
  const char* name;
  void (*change)(Inputs&);
  Mover mover;
  int engine;
  unsigned chunks;  // 0: more than one
  const char* reason;
};

class PlanCase : public testing::TestWithParam<Case> {};

TEST_P(PlanCase, Decides) {
  Inputs inputs = near_machine();
  inputs.request.length = 1u << 20;
  GetParam().change(inputs);
  Reasons reasons;
  const Plan plan = make_plan(inputs, &reasons);
  EXPECT_EQ(plan.mover, GetParam().mover);
  EXPECT_EQ(plan.engine, GetParam().engine);
  if (GetParam().chunks == 0) {
    EXPECT_GT(plan.chunks.count(), 1u);
  } else {
    EXPECT_EQ(plan.chunks.count(), GetParam().chunks);
  }
  EXPECT_TRUE(mentions(reasons, GetParam().reason)) << GetParam().reason;
  EXPECT_EQ(plan.chunks.length, inputs.request.length);
}

constexpr auto caller = Mover::caller;
constexpr auto thread = Mover::thread;
INSTANTIATE_TEST_SUITE_P(
    All, PlanCase,
    testing::Values(
        Case{"large", [](Inputs&) {}, thread, 0, 0, "handing over pays"},
        Case{"small", [](Inputs& i) { i.request.length = 64; }, caller, 0, 1, "fewer than"},
        Case{"zero", [](Inputs& i) { i.request.length = 0; }, caller, 0, 1, "fewer than"},
        Case{"denied", [](Inputs& i) { i.mover = MoverState::denied; }, caller, 0, 1,
             "another process"},
        Case{"impossible", [](Inputs& i) { i.mover = MoverState::impossible; }, caller, 0, 1,
             "one CPU"},
        Case{"full", [](Inputs& i) { i.ring_full = true; }, caller, 0, 1, "ring is full"},
        Case{"held", [](Inputs& i) { i.held = true; }, caller, 0, 1, "fork"},
        Case{"asked_inline", [](Inputs& i) { i.request.force_inline = true; }, caller, 0, 1,
             "HAUL_INLINE"},
        Case{"asked_dedicated",
             [](Inputs& i) {
               i.request.force_dedicated = true;
               i.request.length = 64;
             },
             thread, 0, 1, "HAUL_DEDICATED"},
        Case{"dedicated_but_denied",
             [](Inputs& i) {
               i.request.force_dedicated = true;
               i.mover = MoverState::denied;
             },
             caller, 0, 1, "another process"},
        Case{"fence",
             [](Inputs& i) {
               i.request.fenced_behind = true;
               i.request.length = 64;
             },
             thread, 0, 1, "fence"},
        Case{"knob_caller", [](Inputs& i) { i.settings.mover_caller = true; }, caller, 0, 1,
             "HAUL_PLAN_MOVER"},
        Case{"knob_thread",
             [](Inputs& i) {
               i.settings.mover_thread = true;
               i.request.length = 64;
             },
             thread, 0, 1, "HAUL_PLAN_MOVER"},
        Case{"overlap", [](Inputs& i) { i.request.overlapping = true; }, thread, 0, 1, "overlap"},
        Case{"checked", [](Inputs& i) { i.request.checked = true; }, thread, 1, 0,
             "checked request"},
        Case{"peer",
             [](Inputs& i) {
               i.request.self_only = false;
               i.engines[0].reaches = false;
             },
             thread, 1, 0, "peer's memory"},
        Case{"no_engine", [](Inputs& i) { i.engines[0].reaches = i.engines[1].reaches = false; },
             thread, -1, 0, "No engine"},
        Case{"engine_knob", [](Inputs& i) { i.settings.engine = 2; }, thread, 2, 0,
             "HAUL_PLAN_ENGINE asks for it"},
        Case{"engine_knob_overlap",
             [](Inputs& i) {
               i.settings.engine = 2;
               i.request.overlapping = true;
             },
             thread, 0, 1, "cannot do this"},
        Case{"engine_knob_unable",
             [](Inputs& i) {
               i.settings.engine = 1;
               i.engines[1].available = false;
             },
             thread, 0, 0, "cannot do this"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(Plan, TheReasonNamesTheLargestChunk) {
  Inputs inputs = near_machine();
  inputs.request.length = 64u << 20;
  Reasons reasons;
  const Plan plan = make_plan(inputs, &reasons);
  std::size_t largest = 0;
  for (unsigned i = 0; i < plan.chunks.count(); ++i) {
    largest = std::max(largest, plan.chunks.end(i) - plan.chunks.begin(i));
  }
  EXPECT_TRUE(mentions(reasons, ("up to " + std::to_string(largest) + " bytes").c_str()));
}

TEST(Plan, SchemesAreThePapers) {
  Inputs inputs = near_machine();
  Plan plan;
  plan.engine = 0;
  EXPECT_STREQ(scheme_of(plan, inputs), "SCNI");
  plan.mover = Mover::thread;
  EXPECT_STREQ(scheme_of(plan, inputs), "MCNI");
  inputs.engines[0].device = true;
  EXPECT_STREQ(scheme_of(plan, inputs), "MCI");
  plan.mover = Mover::caller;
  EXPECT_STREQ(scheme_of(plan, inputs), "SCI");
}

Inputs serviced_machine(ServiceReach reach) {
  Inputs inputs = near_machine();
  inputs.service.attached = true;
  inputs.request.service_reach = reach;
  inputs.thresholds.mapped = inputs.thresholds.own;
  inputs.thresholds.mapped_asleep_from = 4u << 20;
  inputs.request.length = 2u << 20;
  return inputs;
}

TEST(PlanService, MappedMemoryGoesToTheService) {
  const Inputs inputs = serviced_machine(ServiceReach::mapped);
  Reasons reasons;
  const Plan plan = make_plan(inputs, &reasons);
  EXPECT_EQ(plan.mover, Mover::service);
  EXPECT_STREQ(inputs.engines[plan.engine].name, "cpu");
  EXPECT_STREQ(scheme_of(plan, inputs), "MCNI");
  EXPECT_STREQ(name_of(plan.mover), "service");
  EXPECT_TRUE(mentions(reasons, "The node's service copies"));
}

TEST(PlanService, PrivateMemoryGoesToAThreadIfOneCanBeHad) {
  Inputs inputs = serviced_machine(ServiceReach::kernel);
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::thread);
  inputs.mover = MoverState::denied;
  inputs.thresholds.own = never;
  const Plan plan = make_plan(inputs, nullptr);
  EXPECT_EQ(plan.mover, Mover::service);
  EXPECT_STREQ(inputs.engines[plan.engine].name, "cma");
  inputs.request.length = kernel_reach_from_bytes - 1;
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::caller);
}

TEST(PlanService, WhatTheServiceCannotDoStaysHere) {
  Inputs inputs = serviced_machine(ServiceReach::none);
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::thread);
  inputs.mover = MoverState::impossible;
  Reasons reasons;
  EXPECT_EQ(make_plan(inputs, &reasons).mover, Mover::caller);
  EXPECT_TRUE(mentions(reasons, "haul_alloc()"));
}

TEST(PlanService, AsleepItIsWokenForLargeCopiesOnly) {
  Inputs inputs = serviced_machine(ServiceReach::mapped);
  inputs.service.asleep = true;
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::caller);
  inputs.request.length = 4u << 20;
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::service);
}

TEST(PlanService, GrantedMemoryIsTheServicesWhateverElse) {
  Inputs inputs = serviced_machine(ServiceReach::mapped);
  inputs.request.granted = true;
  inputs.request.length = 1;
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::service);
  inputs.request.force_inline = true;
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::service);
}

TEST(PlanService, SettingsChooseBetweenThreadAndService) {
  Inputs inputs = serviced_machine(ServiceReach::mapped);
  inputs.settings.mover_thread = true;
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::thread);
  inputs = serviced_machine(ServiceReach::kernel);
  inputs.settings.mover_service = true;
  inputs.request.length = 4096;
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::service);
  inputs.service.attached = false;
  EXPECT_EQ(make_plan(inputs, nullptr).mover, Mover::caller) << "as auto, where none is attached";
}

}  // namespace
}  // namespace haul::plan
