// What two processes of this user can do for each other on this node: tried out by two children.
#pragma once

#include <string>

#include "cli/mpi/fabric_paths.hpp"

namespace haul::cli {

struct PairProbe {
  PairAbilities abilities;
  bool huge_pages = false;  // private memory can be moved to huge pages
  std::string why_not_huge;
};

// Starts two children, which read each other's memory by the kernel and map the same memory. Must
// be called before this process has other threads. Throws tools::CommandFailure if it cannot try.
PairProbe probe_pair();

}  // namespace haul::cli
