// Compares handing over with copying inline at each length; settings and states overrule the
// result.
#include "plan/thresholds.hpp"

#include <algorithm>

namespace haul::plan {
namespace {

// Does handing over pay? Two conditions: a caller that computes meanwhile must gain, although it
// then reads lines that another core wrote; and a caller that waits at once must not lose more than
// a twentieth.
bool pays(const Inputs& inputs, std::size_t length, bool in_memory) noexcept {
  constexpr double probe_ns = 250, tolerable_loss = 0.05;
  const double lines = static_cast<double>(length) / 64;
  const double inline_ns = lines * inline_line_ns(inputs, length, in_memory);
  const double overhead_ns = hand_over_ns(inputs) + (in_memory ? probe_ns : 0);
  return inline_ns - lines * remote_line_ns(inputs) > overhead_ns &&
         inline_ns * tolerable_loss >= hand_over_ns(inputs);
}

// The smallest length from which on handing over always pays.
std::uint64_t threshold_of(const Inputs& inputs, bool in_memory) noexcept {
  if (inputs.settings.inline_bytes != UINT64_MAX) return inputs.settings.inline_bytes;
  std::uint64_t threshold = UINT64_MAX;
  for (unsigned log2 = 40; log2 >= 12; --log2) {
    for (unsigned quarter = 4; quarter-- > 0;) {
      const std::uint64_t length = (std::uint64_t{4} + quarter) << (log2 - 2);
      if (!pays(inputs, length, in_memory)) return threshold;
      threshold = length;
    }
  }
  return threshold;
}

bool thread_possible(const Inputs& inputs) noexcept {
  return inputs.mover != MoverState::denied && inputs.mover != MoverState::impossible;
}

Thresholds thread_thresholds(const Inputs& inputs) noexcept {
  const Settings& settings = inputs.settings;
  if (inputs.held || !thread_possible(inputs) || settings.mover_caller) return never;
  return settings.mover_thread ? always : thresholds_of(inputs);
}

// For memory that the service has mapped, in one of its states.
Thresholds mapped_thresholds(const Inputs& inputs, MoverState service) noexcept {
  const Settings& settings = inputs.settings;
  if (inputs.held || !inputs.service.attached || settings.mover_caller) return never;
  if (settings.mover_service) return always;
  Inputs seen = inputs;
  if (inputs.service.round_trip_ns > 0) seen.round_trip_ns = inputs.service.round_trip_ns;
  seen.mover = service;
  return thresholds_of(seen);
}

// For memory that the service reaches through the kernel.
Thresholds kernel_thresholds(const Inputs& inputs) noexcept {
  const Settings& settings = inputs.settings;
  if (inputs.held || settings.mover_caller) return never;
  if (settings.mover_service) return always;
  const std::uint64_t from =
      settings.inline_bytes != UINT64_MAX ? settings.inline_bytes : kernel_reach_from_bytes;
  return {from, from, from};
}

// The length that a copy which the caller makes itself must have to count towards waking a mover.
Thresholds worth_thresholds(const Inputs& inputs) noexcept {
  constexpr std::uint64_t first = first_start_from_bytes;
  const Settings& settings = inputs.settings;
  if (inputs.held || settings.mover_caller) return never;
  if (!thread_possible(inputs)) {
    // Programs that copy a lot look for the node's service now and then.
    return inputs.service.attached || settings.service_off ? never
                                                           : Thresholds{first, first, first};
  }
  if (settings.mover_thread || inputs.mover == MoverState::awake) return never;
  if (inputs.mover == MoverState::none) return {first, first, first};
  Inputs awake = inputs;
  awake.mover = MoverState::awake;
  return thresholds_of(awake);
}

}  // namespace

double round_trip_ns(const Inputs& inputs) noexcept {
  return inputs.round_trip_ns > 0 ? inputs.round_trip_ns : inputs.calibration.round_trip_ns;
}

// What reading a line that the mover wrote costs extra, at the present distance of the cores. It is
// at least a five-hundredth of the round trip, whatever was measured when the cores were elsewhere:
// Zen 5 showed 0.0022 to 0.0027 of it, from siblings of one core (80 ns) to different caches (500
// ns).
double remote_line_ns(const Inputs& inputs) noexcept {
  constexpr double least_share = 0.002;
  const double measured_at = inputs.calibration.round_trip_ns;
  const double now = round_trip_ns(inputs);
  const double scaled =
      inputs.calibration.remote_line_ns * (measured_at > 0 ? now / measured_at : 1.0);
  return std::max(scaled, least_share * now);
}

// What a hand-over costs the caller whatever the length: the submit, and noticing the end.
double hand_over_ns(const Inputs& inputs) noexcept {
  const Calibration& figures = inputs.calibration;
  const double wake = inputs.mover == MoverState::asleep ? figures.wake_ns
                      : inputs.mover == MoverState::none ? figures.start_ns
                                                         : 0;
  return figures.submit_ns + 2 * round_trip_ns(inputs) + wake;
}

// What a copy of this length costs the caller a line at least: the data may be as near as the sizes
// of the caches allow, unless its source is known to lie in memory.
double inline_line_ns(const Inputs& inputs, std::size_t length, bool in_memory) noexcept {
  const Calibration& figures = inputs.calibration;
  if (in_memory) return figures.cold_line_ns;
  if (length <= inputs.l2_bytes / 2) return figures.hot_line_ns;  // both sides must fit
  if (length <= inputs.l3_bytes / 2) return figures.l3_line_ns;
  return figures.cold_line_ns;
}

Thresholds thresholds_of(const Inputs& inputs) noexcept {
  const std::uint64_t any = threshold_of(inputs, false);
  const std::uint64_t piece = 2 * min_chunk_bytes(round_trip_ns(inputs));
  return {std::min(threshold_of(inputs, true), any), any, std::min(piece, any)};
}

ThresholdSet threshold_set_of(const Inputs& inputs) noexcept {
  ThresholdSet set;
  set.own = thread_thresholds(inputs);
  set.mapped = mapped_thresholds(inputs, MoverState::awake);
  set.mapped_asleep_from = mapped_thresholds(inputs, MoverState::asleep).mover_from;
  set.worth = worth_thresholds(inputs);
  return set;
}

Thresholds thresholds_for(const Inputs& inputs, Mover dedicated) noexcept {
  if (dedicated != Mover::service) return inputs.thresholds.own;
  if (inputs.request.service_reach != ServiceReach::mapped) return kernel_thresholds(inputs);
  const std::uint64_t from = inputs.thresholds.mapped_asleep_from;
  return inputs.service.asleep ? Thresholds{from, from, from} : inputs.thresholds.mapped;
}

ThresholdSet short_road_of(const Inputs& inputs) noexcept {
  Inputs unmapped = inputs;
  unmapped.thresholds = threshold_set_of(inputs);
  unmapped.request.service_reach =
      inputs.service.reaches_memory ? ServiceReach::kernel : ServiceReach::none;
  ThresholdSet set = unmapped.thresholds;
  set.own = thresholds_for(unmapped, dedicated_for(unmapped));
  // HAUL_PLAN_MOVER=thread: what the service has mapped is as all other memory is.
  if (inputs.settings.mover_thread) {
    set.mapped = set.own;
    set.mapped_asleep_from = set.own.mover_from;
  }
  if (inputs.settings.engine >= 0) set.own.inline_below = set.mapped.inline_below = 0;
  // The short road asks whether a device is to be weighed where it asks how the bytes lie.
  set.own.inline_below = std::min(set.own.inline_below, device_from_bytes(inputs));
  return set;
}

}  // namespace haul::plan
