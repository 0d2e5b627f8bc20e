// Another program run to its end, its output kept.
#pragma once

#include <string>
#include <vector>

#include "bench/kit/processes.hpp"

namespace haul::bench {

struct CommandOutcome {
  int status = 0;  // of exit(); 128 + the signal that ended it; 127 if it could not be started
  bool timed_out = false;
  std::string out, err;
  bool good() const { return status == 0 && !timed_out; }
};

// Runs words[0], found in the PATH of `environment` (which is added to this process's), on every
// CPU that this process may use. Its standard input is empty. After limit_s seconds it gets
// SIGTERM, later SIGKILL. It stays in this process's group: an interrupt from the terminal ends
// both. Throws Failure only where no pipe or process can be had.
CommandOutcome run_command(const std::vector<std::string>& words,
                           const tools::Environment& environment, unsigned limit_s);

// What went wrong, in one line: the program's own "error: ..." if there is one, else its first
// line.
std::string reason_of(const CommandOutcome& outcome);

}  // namespace haul::bench
