// Runs an unmodified program under libhaul-mem.so.
#pragma once

#include <string>
#include <vector>

#include "cli/transparent/mem_tables.hpp"
#include "tools/program.hpp"

namespace haul::cli {

struct TransparentOutcome {
  int status = 0;  // as a shell's
  double wall_s = 0;
  double cpu_s = 0;  // of all its processes that were waited for
  std::vector<ProcessTable> processes;
};

// Runs the program to its end, passing on the signals that this process gets, and collects what its
// processes counted. `more`: variables beside transparent_environment()'s.
TransparentOutcome run_transparently(const std::vector<std::string>& command,
                                     const tools::Environment& more = {});

}  // namespace haul::cli
