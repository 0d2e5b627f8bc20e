// bcisim compare: does the fast model agree with the one that goes cycle by cycle?
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "cli/choices.hpp"
#include "cli/commands.hpp"
#include "cli/table.hpp"
#include "study/simulation.hpp"

namespace bcisim::cli {
namespace {

struct CompareArguments {
  std::vector<std::string> traces;
  Parameters parameters;
  SimulationOptions simulation;
  double allowed_percent = 5;
  std::string affinities = "C_C";
  bool cold = false;
};

std::string per_copy(const Result& result) {
  return result.copies == 0 ? "-" : fmt::format("{:.0f}", ratio(result.copy_cycles, result.copies));
}

void compare(const CompareArguments& options) {
  check_machine(options.parameters);
  refuse_pipes(options.traces);
  std::vector<Run> runs;
  for (const std::string& trace : options.traces) {
    for (const SchemeTraits& traits : schemes) {
      Configuration configuration{options.parameters, {}};
      configuration.replay.scheme = traits.scheme;
      configuration.replay.cold_copies = options.cold;
      configuration.replay.affinities.all = affinities_from(options.affinities);
      runs.push_back({trace, configuration, Model::fast});
      runs.push_back({trace, configuration, Model::stepped});
    }
  }
  const std::vector<Result> results =
      with_progress(options.simulation, [&](const SimulationOptions& simulation) {
        return simulate(runs, simulation);
      }).first;

  double worst = 0;
  std::string where;
  Table table({"scheme", "cycles, fast", "stepped", "ratio", "speedup %, fast", "stepped", "ratio",
               "cycles/copy, fast", "stepped"});
  for (std::size_t i = 0; i < runs.size(); i += 2) {
    const std::size_t scheme = i / 2 % schemes.size(), base = i - 2 * scheme;
    const auto cycles = [&results](std::size_t run) {
      return static_cast<double>(std::max<std::uint64_t>(1, results[run].cycles));
    };
    const double fast = cycles(base) / cycles(i), stepped = cycles(base + 1) / cycles(i + 1);
    if (!(std::abs(fast / stepped - 1) <= worst)) {
      worst = std::abs(fast / stepped - 1);
      where = fmt::format("{} of {}", schemes[scheme].name, runs[i].trace);
    }
    if (scheme == 0 && options.traces.size() > 1) table.add({runs[i].trace});
    table.add(
        {std::string(schemes[scheme].name), fmt::format("{}", results[i].cycles),
         fmt::format("{}", results[i + 1].cycles), fmt::format("{:.3f}", cycles(i) / cycles(i + 1)),
         fmt::format("{:.2f}", 100 * (fast - 1)), fmt::format("{:.2f}", 100 * (stepped - 1)),
         fmt::format("{:.3f}", fast / stepped), per_copy(results[i]), per_copy(results[i + 1])});
  }
  table.print();
  fmt::print("\nthe models' speedups differ by {:.2f} % at most\n", 100 * worst);
  if (!(100 * worst <= options.allowed_percent)) {  // also: not a number
    throw std::runtime_error(fmt::format(
        "speedups of {} differ by more than the {} % allowed; tell haul's developers, or "
        "allow more with --allowed",
        where, options.allowed_percent));
  }
}

}  // namespace

void add_compare(CLI::App& root) {
  CLI::App* const command =
      root.add_subcommand("compare", "Hold the fast model against the cycle-stepped one");
  const auto options = std::make_shared<CompareArguments>();
  command->add_option("trace", options->traces, "Traces")->required();
  command->add_option("--affinities", options->affinities, "Of the schemes that have an engine")
      ->capture_default_str();
  command->add_flag("--cold", options->cold, "No block of a copy is in the caches when it begins");
  command
      ->add_option("--allowed", options->allowed_percent,
                   "By how many per cent speedups may differ")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  add_simulation_options(*command, options->simulation);
  add_machine_options(*command, options->parameters);
  command->callback([options] { compare(*options); });
}

}  // namespace bcisim::cli
