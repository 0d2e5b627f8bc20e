// Finding and running the MPI job of `haul run --mpi` and `haul explain --mpi`.
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

// Recognises the MPI of `command` and sets it up. Throws UsageError for a command that it cannot
// set up, tools::CommandFailure if haul or the MPI lacks something.
MpiJob prepare_job(const std::vector<std::string>& command, AllocMem alloc_mem = AllocMem::of_mpi);

// Runs the job to its end while `collector` listens; signals that would end this command go to the
// launcher instead. The launcher's status as a shell tells it.
int run_job(MpiJob job, Collector& collector);

// A word as a shell reads it back.
std::string shell_word(const std::string& text);

}  // namespace haul::cli
