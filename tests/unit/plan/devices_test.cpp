// When the planner takes a device: by its figures, never by its name.
#include "plan/devices.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "plan/plan.hpp"
#include "plan/thresholds.hpp"

namespace haul::plan {
namespace {

constexpr std::size_t device = 2;

// A device of 30 bytes/ns beside a CPU that copies 25 bytes/ns from memory and 134 from its cache.
Inputs machine_with_device() {
  Inputs inputs;
  inputs.engine_count = 3;
  inputs.engines[0] = EngineView{"cpu", true, true, false, true, false};
  inputs.engines[1] = EngineView{"cma", true, true, true, true, false};
  EngineView& dsa = inputs.engines[device];
  dsa = EngineView{"dsa", true, true, false, false, true};
  dsa.facts.startup_ns = 1000;
  dsa.facts.bytes_per_ns = 30;
  dsa.cached = true;
  inputs.mover = MoverState::asleep;
  inputs.calibration = Calibration{true, 110, 30, 10000, 60000, 0.47, 0.95, 2.5, 0.29};
  inputs.thresholds.own = thresholds_of(inputs);
  inputs.request.length = 4u << 20;
  inputs.request.access = Access::in_memory;
  return inputs;
}

std::string chosen(const Inputs& inputs) {
  const Plan plan = make_plan(inputs, nullptr);
  return plan.engine < 0 ? "none" : inputs.engines[plan.engine].name;
}

bool says(const Inputs& inputs, const char* text) {
  Reasons reasons;
  make_plan(inputs, &reasons);
  for (unsigned i = 0; i < reasons.count; ++i)
    if (std::strstr(reasons.text[i], text) != nullptr) return true;
  return false;
}

TEST(PlanDevices, ALargeCopyFromMemoryIsTheDevices) {
  const Inputs inputs = machine_with_device();
  EXPECT_EQ(chosen(inputs), "dsa");
  EXPECT_TRUE(says(inputs, "Engine dsa: it takes about"));
}

TEST(PlanDevices, CallerOrMoverDrivesIt) {
  Inputs inputs = machine_with_device();
  inputs.settings.mover_caller = true;
  EXPECT_STREQ(scheme_of(make_plan(inputs, nullptr), inputs), "SCI");
  inputs.settings.mover_caller = false;
  inputs.mover = MoverState::awake;
  inputs.thresholds.own = thresholds_of(inputs);
  EXPECT_STREQ(scheme_of(make_plan(inputs, nullptr), inputs), "MCI");
}

TEST(PlanDevices, NothingWithoutAPieceOfHardware) {
  Inputs inputs = machine_with_device();
  inputs.engines[device].facts.emulated = true;
  EXPECT_EQ(chosen(inputs), "cpu");
  EXPECT_EQ(device_from_bytes(inputs), UINT64_MAX);
  inputs.settings.engine = device;
  EXPECT_EQ(chosen(inputs), "dsa");
}

TEST(PlanDevices, NorWithoutFigures) {
  Inputs inputs = machine_with_device();
  inputs.engines[device].facts.bytes_per_ns = 0;
  EXPECT_EQ(chosen(inputs), "cpu");
}

// A copy to memory of the device's own, which goes to a mover by rules of its own.
TEST(PlanDevices, WhoeverDrivesCopiesToDeviceMemoryMayHaveToCopy) {
  Inputs inputs = machine_with_device();
  inputs.request.device_memory = true;
  inputs.request.access = Access::cached;
  inputs.thresholds.own = never;  // the cores are far from each other
  for (const MoverState state : {MoverState::none, MoverState::asleep, MoverState::awake}) {
    inputs.mover = state;
    inputs.request.length = 64u << 20;
    EXPECT_STREQ(scheme_of(make_plan(inputs, nullptr), inputs), "MCI");
    EXPECT_TRUE(says(inputs, "copied by whoever drives it"));
    inputs.request.length = 4096;
    EXPECT_STREQ(scheme_of(make_plan(inputs, nullptr), inputs), "SCI");
  }
  inputs.mover = MoverState::denied;
  inputs.request.length = 64u << 20;
  EXPECT_STREQ(scheme_of(make_plan(inputs, nullptr), inputs), "SCI");
}

TEST(PlanDevices, PiecesForDeviceMemoryAreLarger) {
  Inputs inputs = machine_with_device();
  inputs.request.length = 16u << 20;
  const unsigned usual = make_plan(inputs, nullptr).chunks.count();
  inputs.request.device_memory = true;
  EXPECT_LT(make_plan(inputs, nullptr).chunks.count(), usual);
}

struct Hindrance {
  const char* name;
  void (*make)(Inputs& inputs);
  const char* said;
};

class PlanHindrances : public testing::TestWithParam<Hindrance> {};

TEST_P(PlanHindrances, LeaveItToTheCpu) {
  Inputs inputs = machine_with_device();
  GetParam().make(inputs);
  EXPECT_NE(chosen(inputs), "dsa");
  if (GetParam().said != nullptr) {
    EXPECT_TRUE(says(inputs, GetParam().said));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PlanHindrances,
    testing::Values(
        Hindrance{"overlap", [](Inputs& i) { i.request.overlapping = true; }, "sides overlap"},
        Hindrance{"checked", [](Inputs& i) { i.request.checked = true; }, "checked"},
        Hindrance{"new_pages", [](Inputs& i) { i.request.access = Access::new_pages; },
                  "no pages yet"},
        Hindrance{"inline_asked", [](Inputs& i) { i.request.force_inline = true; }, nullptr},
        Hindrance{"held", [](Inputs& i) { i.held = true; }, nullptr},
        Hindrance{"other_rights", [](Inputs& i) { i.request.other_rights = true; }, nullptr},
        Hindrance{"unreached", [](Inputs& i) { i.engines[device].reaches = false; }, nullptr},
        Hindrance{"dead", [](Inputs& i) { i.engines[device].available = false; }, nullptr},
        Hindrance{"queue", [](Inputs& i) { i.engines[device].queued_bytes = 64u << 20; },
                  "67108864 bytes before"},
        Hindrance{"start", [](Inputs& i) { i.engines[device].facts.startup_ns = 1e6; },
                  "1000.0 to start"},
        Hindrance{"registering",
                  [](Inputs& i) {
                    i.engines[device].facts.pin_page_ns = 500;
                    i.engines[device].cached = false;
                  },
                  "Not dsa"},
        Hindrance{"cached_bytes",
                  [](Inputs& i) {
                    i.request.length = 256u << 10;
                    i.request.access = Access::cached;
                  },
                  "Not dsa"}),
    [](const auto& hindrance) { return hindrance.param.name; });

TEST(PlanDevices, RegisteredMemoryIsTheDevicesAgain) {
  Inputs inputs = machine_with_device();
  inputs.engines[device].facts.pin_page_ns = 500;
  inputs.engines[device].cached = true;
  EXPECT_EQ(chosen(inputs), "dsa");
  EXPECT_TRUE(says(inputs, "the memory is registered"));
}

// Bytes that nobody reads soon are not waited for from far away, so the device pays sooner.
TEST(PlanDevices, ADestinationThatStaysOutOfTheCachesLowersTheThreshold) {
  Inputs inputs = machine_with_device();
  inputs.request.length = 128u << 10;
  inputs.request.access = Access::cached;
  EXPECT_EQ(chosen(inputs), "cpu");
  inputs.request.dst_affinity = Affinity::non_cacheable;
  EXPECT_EQ(chosen(inputs), "dsa");
}

TEST(PlanDevices, TheBetterOfTwo) {
  Inputs inputs = machine_with_device();
  inputs.engines[3] = inputs.engines[device];
  inputs.engines[3].name = "dmadev";
  inputs.engine_count = 4;
  inputs.engines[3].facts.bytes_per_ns = 40;
  EXPECT_EQ(chosen(inputs), "dmadev");
  inputs.engines[3].queued_bytes = 8u << 20;
  EXPECT_EQ(chosen(inputs), "dsa");
}

// The short road gives the planner every copy for which a device might be taken.
TEST(PlanDevices, TheShortRoadAsksFromTheRightLengthOn) {
  Inputs inputs = machine_with_device();
  const std::uint64_t from = device_from_bytes(inputs);
  ASSERT_LT(from, 1u << 20);
  ASSERT_GE(from, 4096u);
  for (const Affinity affinity : {Affinity::cacheable, Affinity::non_cacheable}) {
    inputs.request.dst_affinity = affinity;
    for (std::size_t length = 64; length < from / 2; length = length * 3 / 2) {
      inputs.request.length = length;
      EXPECT_EQ(chosen(inputs), "cpu") << length;
    }
  }
}

}  // namespace
}  // namespace haul::plan
