// The traces of a folder, by what they are of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bcisim {

struct Workload {
  std::string name;                // from the trace's metadata
  std::string trace;               // path
  std::uint64_t instructions = 0;  // that it holds
};

// The traces of a folder (*.trace), in the paper's order where their names are known. Throws
// TraceError for one that cannot be read, std::runtime_error where there is none.
std::vector<Workload> workloads_of(const std::string& folder);

}  // namespace bcisim
