// One unmodified program as suite `programs` runs it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/program.hpp"

namespace haul::bench {

struct Workload {
  std::string name;
  std::vector<std::string> command;
  std::string output = {};  // the file that it writes, if any, besides its standard output
  tools::Environment environment = {};
};

// Those that this machine has, working on files below `directory`. `note` takes a sentence about
// each that it has not, and how to get it.
std::vector<Workload> workloads(const std::string& directory,
                                const std::function<void(const std::string&)>& note);

}  // namespace haul::bench
