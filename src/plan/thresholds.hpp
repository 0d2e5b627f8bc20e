// From which lengths on handing over pays: the figures that route() compares with, computed from
// what things cost. They change when a mover's state or distance does; the gate then has them
// computed and keeps them.
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

// The thresholds that hold for inputs.request if `dedicated` would move it.
Thresholds thresholds_for(const Inputs& inputs, Mover dedicated) noexcept;

// What the gate tells the short road, which knows no more of a request than its length and whether
// the service has its memory mapped. `own` is for all memory that the service has not mapped: for a
// thread; where there can be no thread, for what the service reaches through the kernel. Where a
// setting wants a particular engine, nothing is small enough to stay inline: the long road must be
// asked.
ThresholdSet short_road_of(const Inputs& inputs) noexcept;

// Through process_vm_* the service moves bytes two to five times slower than memory can (4 KiB
// pages are pinned one by one, and between two private ranges everything is copied twice): that is
// worth it only to a caller that computes meanwhile, and from here on.
inline constexpr std::uint64_t kernel_reach_from_bytes = 1u << 20;

// Before the first mover has started nothing is known: neither the distance nor the stored figures.
// For a process that copies a lot, finding out is worth it once; and so is looking, where there is
// no mover, whether a service runs by now. Copying a lot means in pieces of this many bytes or
// more.
inline constexpr std::uint64_t first_start_from_bytes = 64u << 10;

// What the costs are made of.
double round_trip_ns(const Inputs& inputs) noexcept;
double remote_line_ns(const Inputs& inputs) noexcept;
double hand_over_ns(const Inputs& inputs) noexcept;
double inline_line_ns(const Inputs& inputs, std::size_t length, bool in_memory) noexcept;

}  // namespace haul::plan
