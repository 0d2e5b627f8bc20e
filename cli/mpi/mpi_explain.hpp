// haul explain --mpi: which path a message takes between two processes, and why.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace haul::cli {

struct MessageQuestion {
  pid_t pid = 0;                     // if not 0: ask this running process
  std::vector<std::string> command;  // if not empty: run it, and ask its ranks
  bool json = false;
};

// Throws tools::CommandFailure and UsageError; ExitStatus if a command was run.
void explain_messages(const MessageQuestion& question);

}  // namespace haul::cli
