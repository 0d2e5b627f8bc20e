// Tries out, with two children, what two processes of this user can do for each other on this node.
#pragma once

#include <string>

#include "cli/mpi/fabric_paths.hpp"

namespace haul::cli {

struct PairProbe {
  PairAbilities abilities;
  bool huge_pages = false;  // private memory can be moved to huge pages
  std::string why_not_huge;
};

// Starts two children, which read each other's memory through the kernel and map the same memory.
// Must be called while this process has one thread. Throws tools::CommandFailure if it cannot try.
PairProbe probe_pair();

}  // namespace haul::cli
