// Runs another program to its end and keeps its output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/program.hpp"

namespace haul::bench {

struct CommandOutcome {
  int status =
      0;  // as exit() gave it; 128 + the signal that ended it; 127 if it could not be started
  bool timed_out = false;
  std::string out, err;
  // From before it was started to its end; the CPU time of it and of its children that it waited
  // for; the most memory that one of these had.
  double wall_ns = 0, cpu_ns = 0;
  std::uint64_t peak_bytes = 0;
  bool good() const { return status == 0 && !timed_out; }
};

// Runs words[0], which is looked up in the PATH of `environment` (added to this process's), on
// every CPU that this process may use. Its standard input is empty. After limit_s seconds it gets
// SIGTERM, later SIGKILL. It stays in this process's group, so an interrupt from the terminal ends
// both. Throws CommandFailure only if no pipe or process can be made.
CommandOutcome run_command(const std::vector<std::string>& words,
                           const tools::Environment& environment, unsigned limit_s);

// What went wrong, in one line: the program's own "error: ..." if it printed one, else its first
// line.
std::string reason_of(const CommandOutcome& outcome);

}  // namespace haul::bench
