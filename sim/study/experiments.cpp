#include "study/experiments.hpp"

#include <algorithm>

namespace bcisim {

void Experiments::add(const std::string& name, const Configuration& configuration, Model model) {
  const std::pair what{configuration, model};
  const auto known = std::find(distinct_.begin(), distinct_.end(), what);
  names_[name] = static_cast<std::size_t>(known - distinct_.begin());
  if (known == distinct_.end()) distinct_.push_back(what);
}

void Experiments::run(const SimulationOptions& options) {
  std::vector<Run> runs;
  for (const Workload& workload : workloads_) {
    for (const auto& [configuration, model] : distinct_) {
      runs.push_back({workload.trace, configuration, model});
    }
  }
  results_ = simulate(runs, options);
}

}  // namespace bcisim
