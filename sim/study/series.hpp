// What figures are made of.
#pragma once

#include <string>
#include <vector>

#include "study/experiments.hpp"
#include "study/figures.hpp"

namespace bcisim {

using Values = std::vector<std::optional<double>>;

inline Configuration configuration_of(Scheme scheme, Affinities affinities = {}) {
  Configuration configuration;
  configuration.replay.scheme = scheme;
  configuration.replay.affinities.all = affinities;
  return configuration;
}

// The name of FastBCI's run.
inline std::string bci(Affinities affinities) {
  return "fast-bci " + name_of(affinities);
}

// The value of each workload, and the mean of those that have one.
template <class Value>
Values with_average(const Experiments& experiments, Value&& value) {
  Values values;
  double sum = 0;
  unsigned count = 0;
  for (std::size_t workload = 0; workload < experiments.workloads().size(); ++workload) {
    const std::optional<double> one = value(workload);
    values.push_back(one);
    if (!one) continue;
    sum += *one;
    ++count;
  }
  values.push_back(count == 0 ? std::nullopt : std::optional(sum / count));
  return values;
}

// A figure without series: its categories are the workloads and their average.
inline Figure per_workload(const Experiments& experiments, std::string id, std::string title,
                           std::string unit) {
  Figure figure{std::move(id), std::move(title), std::move(unit), Drawing::bars, {}, {}};
  for (const Workload& workload : experiments.workloads())
    figure.categories.push_back(workload.name);
  figure.categories.emplace_back("average");
  return figure;
}

// Where the paper tells the average and nothing else.
inline Values average_alone(const Figure& figure, std::optional<double> average) {
  Values values(figure.categories.size());
  values.back() = average;
  return values;
}

// A series of the workloads' values, of which the paper may tell the average.
template <class Value>
void add_series(Figure& figure, const Experiments& experiments, const std::string& name,
                std::optional<double> paper, Value&& value) {
  figure.series.push_back({name, with_average(experiments, value), average_alone(figure, paper)});
}

// How much faster the run is than the base, in per cent.
inline void add_speedups(Figure& figure, const Experiments& experiments, const std::string& label,
                         const std::string& run, const std::string& base, Values paper) {
  const auto value = [&](std::size_t workload) { return experiments.speedup(workload, run, base); };
  figure.series.push_back({label, with_average(experiments, value), std::move(paper)});
}

}  // namespace bcisim
