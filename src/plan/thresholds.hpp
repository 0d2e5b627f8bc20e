// From which lengths on handing over pays: the figures that route() compares with, computed from
// what things cost. They change when a mover's state or distance does, so the gate has them
// computed then and keeps them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plan/plan.hpp"

namespace haul::plan {

// The thresholds in the mover's present state, by costs alone. (inputs.thresholds is not read.)
Thresholds thresholds_of(const Inputs& inputs) noexcept;

// All thresholds, in the present state of the movers and with the user's settings. The request and
// inputs.thresholds are not read.
ThresholdSet threshold_set_of(const Inputs& inputs) noexcept;

// The thresholds that hold for inputs.request if `dedicated` is who would move it.
Thresholds thresholds_for(const Inputs& inputs, Mover dedicated) noexcept;

// What the gate tells the short road, which knows no more of a request than its length and whether
// the service has its memory mapped. `own` is for all memory that it has not: a thread's, or, where
// none can be had, what the service reaches through the kernel. Where a setting wants an engine of
// its own, nothing is small enough to stay: the long road is to be asked.
ThresholdSet short_road_of(const Inputs& inputs) noexcept;

// By process_vm_* the service moves bytes two to five times slower than memory can (4 KiB pages are
// pinned one by one, and between two private ranges everything is copied twice): worth it only to a
// caller that computes meanwhile, and from here on.
inline constexpr std::uint64_t kernel_reach_from_bytes = 1u << 20;

// Before the first mover has started nothing is known: neither the distance nor the stored figures.
// A process that copies much is worth finding out for, once; and so is, where there is no mover,
// whether a service runs by now. What counts as much is copied in pieces from here on.
inline constexpr std::uint64_t first_start_from_bytes = 64u << 10;

// What the costs are made of.
double round_trip_ns(const Inputs& inputs) noexcept;
double remote_line_ns(const Inputs& inputs) noexcept;
double hand_over_ns(const Inputs& inputs) noexcept;
double inline_line_ns(const Inputs& inputs, std::size_t length, bool in_memory) noexcept;

}  // namespace haul::plan
