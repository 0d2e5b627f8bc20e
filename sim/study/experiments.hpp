// Named runs of every workload, and their results by name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "study/figures.hpp"
#include "study/simulation.hpp"

namespace bcisim {

class Experiments {
 public:
  explicit Experiments(std::vector<Workload> workloads) : workloads_(std::move(workloads)) {}

  // Before run(). What has two names is run once.
  void add(const std::string& name, const Configuration& configuration, Model model = Model::fast);
  // All that was added, once.
  void run(const SimulationOptions& options);

  const Result& result(std::size_t workload, const std::string& name) const {
    return results_[workload * distinct_.size() + names_.at(name)];
  }
  // How much faster than the other, in per cent; nothing where one of them had nothing to do.
  std::optional<double> speedup(std::size_t workload, const std::string& name,
                                const std::string& base) const {
    const std::uint64_t cycles = result(workload, name).cycles;
    const std::uint64_t base_cycles = result(workload, base).cycles;
    if (cycles == 0 || base_cycles == 0) return std::nullopt;
    return 100.0 * (static_cast<double>(base_cycles) / static_cast<double>(cycles) - 1.0);
  }
  const std::vector<Workload>& workloads() const { return workloads_; }

 private:
  std::vector<Workload> workloads_;
  std::vector<std::pair<Configuration, Model>> distinct_;
  std::map<std::string, std::size_t> names_;  // index into distinct_
  std::vector<Result> results_;               // workload by workload
};

}  // namespace bcisim
