// A program that copies, computes, and then reads the copy, in a process of its own under one plan
// of libhaul-mem.so.
#pragma once

#include <cstddef>

#include "tools/program.hpp"

namespace haul::bench {

struct LateCallTimes {
  double call_ns;   // of memcpy() into new memory
  double total_ns;  // the call, computation for `compute_ns`, reading what was copied
  double touch_ns;  // reading a word in the middle of it, right after the call
};

// Medians of some calls. The bytes are checked.
LateCallTimes time_late_calls(std::size_t bytes, bool huge_source, double compute_ns,
                              const tools::Environment& environment);

}  // namespace haul::bench
