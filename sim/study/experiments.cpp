#include "study/experiments.hpp"

#include <algorithm>
#include <utility>

namespace bcisim {

namespace {

// The traced loop knows nothing of the engine and of what it replaces.
Configuration without_what_is_unused(Configuration configuration) {
  if (configuration.replay.scheme != Scheme::traditional) return configuration;
  const ReplayOptions asked = std::exchange(configuration.replay, ReplayOptions{});
  configuration.replay.cold_copies = asked.cold_copies;
  // Which copies are cold.
  configuration.replay.least_copy_bytes = asked.cold_copies ? asked.least_copy_bytes : 1;
  configuration.replay.fills = asked.cold_copies && asked.fills;
  Parameters& parameters = configuration.parameters;
  const Parameters usual;
  parameters.cst_entries = usual.cst_entries;
  parameters.engine_parallel = usual.engine_parallel;
  parameters.modulus_cycles = usual.modulus_cycles;
  parameters.shift_cycles = usual.shift_cycles;
  parameters.reads_destination = usual.reads_destination;
  parameters.write_buffer_entries = usual.write_buffer_entries;
  return configuration;
}

}  // namespace

void Experiments::add(const std::string& name, const Configuration& configuration, Model model) {
  const std::pair what{without_what_is_unused(configuration), model};
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
