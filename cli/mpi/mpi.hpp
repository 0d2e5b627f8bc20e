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
  std::string launcher;  // the file, as PATH leads to it
};

// Which MPI the launcher at `file` belongs to, by what it says of itself. nullopt and *why, a
// clause such as "it is of MPICH 3.2, too old for ...", if that is none that haul can set up.
std::optional<InstalledMpi> recognise_mpi(const std::string& file, std::string* why);

// What this MPI lacks to run on a libfabric provider, with the remedy; "" if nothing.
std::string missing_for_provider(const InstalledMpi& mpi);

// The provider's file, beside the libhaul.so.0 of this process; "" if it is not there.
std::string provider_file();
// Why it is not there, and the remedy.
std::string provider_remedy();

// An MPI's command and environment, so that its ranks send by haul.
struct MpiSetup {
  std::vector<std::string> command;
  tools::Environment environment;
};

// Where MPI_Alloc_mem() takes its memory from: the MPI's own, or haul's arena, which ranks map.
enum class AllocMem { of_mpi, of_haul };

// Of `command`, which begins with the launcher. Throws UsageError where the command itself asks for
// other transports.
MpiSetup set_up_mpi(const InstalledMpi& mpi, const std::vector<std::string>& command,
                    const std::string& provider_directory, AllocMem alloc_mem = AllocMem::of_mpi);

// What any launch of this MPI needs wherever it was installed, haul or not.
tools::Environment launch_environment(const InstalledMpi& mpi);

}  // namespace haul::cli
