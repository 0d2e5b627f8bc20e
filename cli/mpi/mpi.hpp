// The MPIs that haul knows: which one a launcher belongs to, and what each needs to run on the
// provider.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/program.hpp"

namespace haul::cli {

enum class MpiKind { open_mpi_4, open_mpi_5, mpich, intel };

struct InstalledMpi {
  MpiKind kind = MpiKind::mpich;
  std::string title;     // "Open MPI 4.1.4"
  std::string launcher;  // the file, as found in PATH
};

// Finds out which MPI the launcher at `file` belongs to, from what it says about itself. If haul
// cannot set that up, returns nothing, and *why is a clause such as "MPICH 3.2 is too old for haul;
// use 3.4 or newer".
std::optional<InstalledMpi> recognise_mpi(const std::string& file, std::string* why);

// What this MPI lacks to run on a libfabric provider, with the remedy; "" if it lacks nothing.
std::string missing_for_provider(const InstalledMpi& mpi);

// The provider's file, beside this process's libhaul.so.0; "" if it is missing.
std::string provider_file();
// Why the provider is missing, and the remedy.
std::string provider_remedy();

// The command and the environment with which an MPI's ranks send by haul.
struct MpiSetup {
  std::vector<std::string> command;
  tools::Environment environment;
};

// Which memory of a rank comes from haul's arena, so that the other ranks can map it: none, what
// MPI_Alloc_mem() and MPI_Win_allocate() give, or also malloc's large allocations.
enum class SharedMemory { none, of_mpi, of_malloc };

// Sets up `command`, which begins with the launcher. Throws UsageError if the command itself asks
// for another transport.
MpiSetup set_up_mpi(const InstalledMpi& mpi, const std::vector<std::string>& command,
                    const std::string& provider_directory,
                    SharedMemory shared = SharedMemory::none);

// What every launch of this MPI needs because of where it is installed, with haul or without.
tools::Environment launch_environment(const InstalledMpi& mpi);

}  // namespace haul::cli
