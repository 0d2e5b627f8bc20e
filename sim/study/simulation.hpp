// Runs traces on machines, several at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/machine.hpp"

namespace bcisim {

struct Run {
  std::string trace;  // path
  Configuration configuration;
  Model model = Model::fast;
};

struct SimulationOptions {
  unsigned threads = 1;
  std::uint64_t instructions = ~std::uint64_t{0};  // of each trace, from its beginning
  // Called now and then from one thread at a time with what share is done, 0 to 1; may be empty.
  std::function<void(double)> progress;
  // So many of the instructions, to the end of their chunk, warm caches and predictors and are not
  // in the results. Less than `instructions`, and than a trace has.
  std::uint64_t uncounted = 0;
};

// The results, in the order of the runs; runs of the same trace next to each other are decoded
// once. Throws TraceError; std::invalid_argument where parameters are wrong.
std::vector<Result> simulate(const std::vector<Run>& runs, const SimulationOptions& options);

}  // namespace bcisim
