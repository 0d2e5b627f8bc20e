// The figures of paper 003, from traces, with what the paper says beside; and what it does not
// show: how its results depend on what it leaves open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study/simulation.hpp"
#include "study/workloads.hpp"

namespace bcisim {

struct Series {
  std::string name;
  std::vector<std::optional<double>> values, paper;  // one for each category
};

// How it is drawn: bars beside or upon one another, or not at all, since its series have units of
// their own.
enum class Drawing { bars, stacked, table };

struct Figure {
  std::string id;  // "2", "10a", "parallelism"
  std::string title, unit;
  Drawing drawing = Drawing::bars;
  std::vector<std::string> categories;
  std::vector<Series> series;
};

struct FigureOptions {
  SimulationOptions simulation;
  // Of each trace, for what is not the paper's; as many before them warm the caches.
  std::uint64_t sensitivity_instructions = 2'500'000;
};

std::vector<Figure> make_figures(const std::vector<Workload>& workloads,
                                 const FigureOptions& options);

}  // namespace bcisim
