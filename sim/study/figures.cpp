#include "study/figures.hpp"

#include <algorithm>
#include <array>

#include "study/copies_table.hpp"
#include "study/experiments.hpp"
#include "study/sensitivities.hpp"
#include "study/series.hpp"

namespace bcisim {
namespace {

// The paper's own affinities; the third is never better than neutral there (VI).
constexpr std::array<Affinities, 4> shown_affinities{{
    {Affinity::cacheable, Affinity::cacheable},
    {Affinity::cacheable, Affinity::neutral},
    {Affinity::neutral, Affinity::cacheable},
    {Affinity::neutral, Affinity::neutral},
}};
constexpr Affinities uncached{Affinity::non_cacheable, Affinity::non_cacheable};
constexpr std::uint64_t large_l2_bytes = 8 << 20;

std::string large(const std::string& name) {
  return name + ", 8 MB L2";
}

void add_paper_runs(Experiments& experiments) {
  for (const SchemeTraits& traits : schemes) {
    if (traits.scheme == Scheme::fast_bci || traits.scheme == Scheme::perfect_granularity) continue;
    experiments.add(std::string(traits.name), configuration_of(traits.scheme));
  }
  // The same machine.
  experiments.add("perfect-granularity", configuration_of(Scheme::copy_engine));
  for (const Affinities affinities : every_affinities) {
    experiments.add(bci(affinities), configuration_of(Scheme::fast_bci, affinities));
  }
  for (const Scheme scheme : {Scheme::copy_engine, Scheme::dma}) {
    experiments.add(std::string(traits_of(scheme).name) + ", uncached",
                    configuration_of(scheme, uncached));
  }
  Configuration loop = configuration_of(Scheme::traditional);
  loop.parameters.l2.bytes = large_l2_bytes;
  experiments.add(large("traditional"), loop);
  for (const Affinities affinities : shown_affinities) {
    Configuration configuration = configuration_of(Scheme::fast_bci, affinities);
    experiments.add("misses " + name_of(affinities), configuration, Model::misses);
    configuration.parameters.l2.bytes = large_l2_bytes;
    experiments.add(large(bci(affinities)), configuration);
  }
}

Figure figure_2(const Experiments& experiments) {
  Figure figure = per_workload(experiments, "2", "Limit speedups", "speedup over the loop, %");
  const auto add = [&](const char* label, const char* run, double paper) {
    add_speedups(figure, experiments, label, run, "traditional", average_alone(figure, paper));
  };
  add("perfect granularity", "perfect-granularity", 8);
  add("perfect pipeline", "perfect-pipeline", 24);
  add("perfect cache", "perfect-cache", 37);
  return figure;
}

// Of the cycles with a bulk instruction that retires when it is done: what early retirement saves,
// what waiting for blocks instead of copies saves then, and the rest. The paper does not say how it
// took its parts; those of its average speedups (figure 9) are 7.9 and 4.6 %, it states 7.8
// and 4.4.
Figure figure_4(const Experiments& experiments) {
  Figure figure = per_workload(experiments, "4", "Where the cycles go", "share of CPI, %");
  figure.drawing = Drawing::stacked;
  const auto share = [&](std::size_t workload, const std::string& run) {
    return 100.0 * static_cast<double>(experiments.result(workload, run).cycles) /
           static_cast<double>(
               std::max<std::uint64_t>(1, experiments.result(workload, "copy-engine").cycles));
  };
  const auto early = [&](std::size_t workload) {
    return std::min(100.0, share(workload, "0-dma"));
  };
  const auto by_block = [&](std::size_t workload) {
    return std::min(early(workload), share(workload, bci({})));
  };
  add_series(figure, experiments, "execution and regular stalls", 100 - 12.2, by_block);
  add_series(figure, experiments, "ROB clog", 7.8, [&](std::size_t w) { return 100.0 - early(w); });
  add_series(figure, experiments, "dependence", 4.4,
             [&](std::size_t w) { return early(w) - by_block(w); });
  return figure;
}

Affinities best_affinities(const Experiments& experiments, std::size_t workload) {
  Affinities best;
  for (const Affinities affinities : every_affinities) {
    if (experiments.result(workload, bci(affinities)).cycles <
        experiments.result(workload, bci(best)).cycles) {
      best = affinities;
    }
  }
  return best;
}

Figure figure_9(const Experiments& experiments) {
  Figure figure = per_workload(experiments, "9", "Speedups of schemes", "speedup over the loop, %");
  const auto add = [&](const char* label, const std::string& run, std::optional<double> paper) {
    add_speedups(figure, experiments, label, run, "traditional", average_alone(figure, paper));
  };
  add("CopyEng", "copy-engine", 7.9);
  add("0-DMA", "0-dma", 17.1);
  add("FastBCI", bci({}), 23.2);
  add_series(figure, experiments, "FastBCI+CAF", 32.1, [&](std::size_t w) {
    return experiments.speedup(w, bci(best_affinities(experiments, w)), "traditional");
  });
  add("CopyEng, uncached", "copy-engine, uncached", 5.7);
  add("0-DMA, uncached", "0-dma, uncached", 12.8);
  add("vector loop", "vector-loop", std::nullopt);
  add("rep movs", "rep-movs", std::nullopt);
  return figure;
}

// What figure 10(a) says of Apache.
std::optional<double> paper_speedup(const std::string& workload, Affinities affinities) {
  constexpr std::array<double, 4> receiver{15, 18, 17, 21}, sender{21, 14, 25, 22};
  const auto index = static_cast<std::size_t>(
      std::find(shown_affinities.begin(), shown_affinities.end(), affinities) -
      shown_affinities.begin());
  if (workload == "apache-receiver") return receiver[index];
  if (workload == "apache-sender") return sender[index];
  return std::nullopt;
}

Figure figure_10a(const Experiments& experiments) {
  Figure figure = per_workload(experiments, "10a", "Speedups by affinities (source_destination)",
                               "speedup over the loop, %");
  for (const Affinities affinities : shown_affinities) {
    Values paper;
    for (const std::string& name : figure.categories)
      paper.push_back(paper_speedup(name, affinities));
    add_speedups(figure, experiments, name_of(affinities), bci(affinities), "traditional", paper);
  }
  return figure;
}

Figure figure_10b(const Experiments& experiments) {
  Figure figure{
      "10b", "L2 misses of what is not a copy", "% of those with NEU_NEU", Drawing::stacked, {},
      {}};
  Series original{"OrigMiss", {}, {}}, harmful{"HarmMiss", {}, {}};
  for (std::size_t workload = 0; workload < experiments.workloads().size(); ++workload) {
    const std::string& name = experiments.workloads()[workload].name;
    const auto base = static_cast<double>(
        std::max<std::uint64_t>(1, experiments.result(workload, "misses NEU_NEU").l2_misses));
    for (const Affinities affinities : shown_affinities) {
      const Result& result = experiments.result(workload, "misses " + name_of(affinities));
      const bool is_told = name == "apache-sender" && name_of(affinities) == "NEU_C";
      figure.categories.push_back(name + " " + name_of(affinities));
      original.values.emplace_back(
          100.0 * static_cast<double>(result.l2_misses - result.harmful_l2_misses) / base);
      harmful.values.emplace_back(100.0 * static_cast<double>(result.harmful_l2_misses) / base);
      original.paper.push_back(is_told ? std::optional(100 - 4.4) : std::nullopt);
      harmful.paper.push_back(is_told ? std::optional(1.7) : std::nullopt);
    }
  }
  figure.series = {original, harmful};
  return figure;
}

Figure figure_11(const Experiments& experiments) {
  Figure figure = per_workload(experiments, "11", "Speedups by affinities, 8 MB L2",
                               "speedup over the loop, %");
  for (const Affinities affinities : shown_affinities) {
    add_speedups(figure, experiments, name_of(affinities), large(bci(affinities)),
                 large("traditional"), Values(figure.categories.size()));
  }
  return figure;
}

}  // namespace

std::vector<Figure> make_figures(const std::vector<Workload>& workloads,
                                 const FigureOptions& options) {
  Experiments experiments(workloads);
  add_paper_runs(experiments);
  // The paper's runs are most of the work: what share of it, by instructions.
  constexpr double paper_share = 0.8;
  const SimulationOptions& asked = options.simulation;
  const auto part = [&asked](double from, double to) -> std::function<void(double)> {
    if (!asked.progress) return nullptr;
    return [&asked, from, to](double done) { asked.progress(from + (to - from) * done); };
  };
  experiments.run({asked.threads, asked.instructions, part(0, paper_share)});
  std::vector<Figure> figures{figure_2(experiments),    figure_4(experiments),
                              figure_9(experiments),    figure_10a(experiments),
                              figure_10b(experiments),  figure_11(experiments),
                              copies_table(experiments)};
  // Half of it warms the caches.
  std::uint64_t most = asked.instructions;
  for (const Workload& workload : workloads) most = std::min(most, workload.instructions);
  const std::uint64_t counted =
      std::max<std::uint64_t>(1, std::min(most / 2, options.sensitivity_instructions));
  const SimulationOptions fewer{asked.threads, 2 * counted, part(paper_share, 1), counted};
  for (Figure& figure : sensitivities(workloads, fewer)) {
    figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace bcisim
