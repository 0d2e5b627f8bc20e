// How the schemes' speedups depend on what paper 003 leaves open, and on today's machines.
#pragma once

#include <vector>

#include "study/figures.hpp"
#include "study/simulation.hpp"

namespace bcisim {

// A figure for each question: average speedups over the loop, whose machine changes likewise.
std::vector<Figure> sensitivities(const std::vector<Workload>& workloads,
                                  const SimulationOptions& options);

}  // namespace bcisim
