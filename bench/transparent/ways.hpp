// With what an unmodified program runs.
#pragma once

#include <vector>

#include "tools/program.hpp"

namespace haul::bench {

struct ProgramWay {
  const char* name;  // as the rows say it
  tools::Environment environment;
};

// The first is the program as it is. Then libhaul-mem.so, which chooses (auto); and, if not
// `quick`, the same library held to one plan (caller, together), and glibc's malloc asked for huge
// pages (the tunable glibc.malloc.hugetlb), which needs no haul. Throws tools::CommandFailure where
// the library is missing.
std::vector<ProgramWay> program_ways(bool quick);

}  // namespace haul::bench
