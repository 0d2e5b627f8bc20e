// The MPIs of this machine.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/mpi/mpi.hpp"

namespace haul::cli {

struct FoundMpi {
  InstalledMpi mpi;
  std::string libfabric;  // version; "" if it cannot be told
  std::string missing;    // what it lacks to run on haul, with the remedy; "" if nothing
};

// The MPIs whose launchers PATH leads to, in its order, then those in the usual places and those
// that `make bench-peers` installs. Runs each launcher. Starts no thread, and must be called before
// any is started.
std::vector<FoundMpi> find_mpis();

// The same without the versions of libfabric; may be called while threads run.
std::vector<InstalledMpi> find_launchers();

// For `haul info`.
void print_messages(const std::vector<FoundMpi>& mpis);
nlohmann::ordered_json messages_document(const std::vector<FoundMpi>& mpis);

}  // namespace haul::cli
