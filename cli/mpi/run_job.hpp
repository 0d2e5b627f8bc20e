// Finds and runs the MPI job of `haul run --mpi` and `haul explain --mpi`.
#pragma once

#include <string>
#include <vector>

#include "cli/mpi/fabric_collector.hpp"
#include "cli/mpi/mpi.hpp"

namespace haul::cli {

struct MpiJob {
  InstalledMpi mpi;
  MpiSetup setup;
};

// Recognises the MPI of `command` and sets it up. Throws UsageError for a command that cannot be
// set up, tools::CommandFailure if haul or the MPI lacks something.
MpiJob prepare_job(const std::vector<std::string>& command,
                   SharedMemory shared = SharedMemory::none);

// Runs the job to its end while `collector` listens. Signals that would end this command go to the
// launcher instead. Returns the launcher's status as a shell tells it.
int run_job(MpiJob job, Collector& collector);

// Quotes a word so that a shell reads it back.
std::string shell_word(const std::string& text);

}  // namespace haul::cli
