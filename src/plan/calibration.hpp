// The figures that a plan rests on: what copying costs the caller here, and what it costs the
// caller to have another core do it.
#pragma once

#include <cstdint>

namespace haul::plan {

// All in nanoseconds, or in nanoseconds a 64-byte line. Plain data. The defaults are safe guesses
// for a machine that was never measured: with them, copies go to a dedicated core later than is
// ideal, never sooner.
struct Calibration {
  bool measured = false;
  double round_trip_ns = 400;   // caller -> mover core -> caller, when the rest was measured
  double submit_ns = 40;        // to publish a request to an awake mover
  double wake_ns = 10'000;      // submit's extra cost when the mover sleeps
  double start_ns = 60'000;     // submit's extra cost when the mover thread must be made
  double hot_line_ns = 0.45;    // the caller copies, both sides in its own L1/L2
  double l3_line_ns = 0.9;      // ... in the shared cache
  double cold_line_ns = 2.5;    // ... in memory
  double remote_line_ns = 1.2;  // extra for the caller to read a line that the mover's core wrote
  // process_vm_readv of small pages that the mover's core wrote: a call, and each line of it. (If
  // it was not measured, or is refused, these defaults keep it from being chosen for its speed.)
  double kernel_call_ns = 2000;
  double kernel_line_ns = 100;
};

}  // namespace haul::plan
