// The MPIs of this machine.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/mpi/mpi.hpp"

namespace haul::cli {

struct FoundMpi {
  InstalledMpi mpi;
  std::string libfabric;  // its version, "" if it cannot be told
  std::string missing;    // what it lacks to run on haul, with the remedy; "" if nothing
};

// Those whose launchers PATH leads to, in its order, then those in usual places and those that
// `make bench-peers` installs. Runs each launcher; starts no thread, and must be called before one
// is started.
std::vector<FoundMpi> find_mpis();

// The same without the look at libfabric, and with threads running.
std::vector<InstalledMpi> find_launchers();

// For `haul info`.
void print_messages(const std::vector<FoundMpi>& mpis);
nlohmann::ordered_json messages_document(const std::vector<FoundMpi>& mpis);

}  // namespace haul::cli
