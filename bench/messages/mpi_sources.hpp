// The files that a measurement with MPI needs beside this program: the benchmarks in C, which are
// compiled on this machine with each MPI, and the script that knows the MPIs. They are part of the
// program, so that an installed one needs no source tree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace haul::bench {

struct SourceFile {
  std::string_view path;  // as the files include each other
  std::string_view text;
};

// Of the folder bench/messages/mpi/.
const std::vector<SourceFile>& mpi_sources();

// scripts/peers.sh
std::string_view peers_script();

}  // namespace haul::bench
