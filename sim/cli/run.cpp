// bcisim run: traces under schemes, as a table.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/choices.hpp"
#include "cli/commands.hpp"
#include "cli/table.hpp"
#include "study/simulation.hpp"

namespace bcisim::cli {
namespace {

struct RunArguments {
  std::vector<std::string> traces, schemes, affinities{"C_C"};
  std::string model = "fast";
  JsonOption json;
  Configuration configuration;
  SimulationOptions simulation;
};

struct Row {
  std::string trace, scheme, affinities;
  bool is_base;
};

nlohmann::json json_of(const Row& row, const Result& r, double speedup) {
  return {{"trace", row.trace},
          {"scheme", row.scheme},
          {"affinities", row.affinities},
          {"instructions", r.instructions},
          {"cycles", r.cycles},
          {"speedup_percent", speedup},
          {"rob_clog_cycles", r.rob_clog_cycles},
          {"dependence_cycles", r.dependence_cycles},
          {"engine_cycles", r.engine_cycles},
          {"fence_cycles", r.fence_cycles},
          {"copies", r.copies},
          {"copy_bytes", r.copy_bytes},
          {"copy_cycles", r.copy_cycles},
          {"branches", r.branches},
          {"mispredicted", r.mispredicted},
          {"tlb_misses", r.tlb_misses},
          {"accesses", r.accesses},
          {"l1_misses", r.l1_misses},
          {"l2_misses", r.l2_misses},
          {"copy_l2_misses", r.copy_l2_misses},
          {"bus_blocks", r.bus_blocks}};
}

void run(const RunArguments& options) {
  check_machine(options.configuration.parameters);
  refuse_pipes(options.traces);
  std::vector<Run> runs;
  std::vector<Row> rows;
  std::vector<std::string> names = options.schemes;
  if (names.empty()) {
    for (const SchemeTraits& traits : bcisim::schemes) names.emplace_back(traits.name);
  }
  const Model model = options.model == "stepped" ? Model::stepped : Model::fast;
  for (const std::string& trace : options.traces) {
    Configuration configuration = options.configuration;
    runs.push_back({trace, configuration, model});
    rows.push_back({trace, "traditional", "", true});
    for (const std::string& name : names) {
      configuration.replay.scheme = scheme_of(name);
      if (configuration.replay.scheme == Scheme::traditional) continue;
      const bool has_affinities = traits_of(configuration.replay.scheme).uses_engine;
      for (const std::string& affinities : options.affinities) {
        configuration.replay.affinities.all = affinities_from(affinities);
        runs.push_back({trace, configuration, model});
        rows.push_back({trace, name, has_affinities ? affinities : "", false});
        if (!has_affinities) break;
      }
    }
  }
  const auto [results, seconds] = with_progress(
      options.simulation,
      [&](const SimulationOptions& simulation) { return simulate(runs, simulation); });

  Table table({"scheme", "affinities", "instructions", "cycles", "CPI", "speedup %", "ROB clog %",
               "dependence %", "engine %", "fence %", "cycles/copy", "L2 misses", "+ copies'"});
  nlohmann::json document = nlohmann::json::array();
  std::uint64_t instructions = 0, base = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Result& r = results[i];
    if (rows[i].is_base) base = r.cycles;
    if (rows[i].is_base && options.traces.size() > 1) table.add({rows[i].trace});
    const double speedup = 100 * (ratio(base, r.cycles) - (r.cycles != 0 ? 1 : 0));
    table.add({rows[i].scheme, rows[i].affinities, fmt::format("{}", r.instructions),
               fmt::format("{}", r.cycles), fmt::format("{:.3f}", ratio(r.cycles, r.instructions)),
               fmt::format("{:.2f}", speedup),
               fmt::format("{:.2f}", 100 * ratio(r.rob_clog_cycles, r.cycles)),
               fmt::format("{:.2f}", 100 * ratio(r.dependence_cycles, r.cycles)),
               fmt::format("{:.2f}", 100 * ratio(r.engine_cycles, r.cycles)),
               fmt::format("{:.2f}", 100 * ratio(r.fence_cycles, r.cycles)),
               fmt::format("{:.0f}", ratio(r.copy_cycles, r.copies)),
               fmt::format("{}", r.l2_misses), fmt::format("{}", r.copy_l2_misses)});
    document.push_back(json_of(rows[i], r, speedup));
    instructions += r.instructions;
  }
  if (!options.json.takes_place_of_text()) {
    table.print();
    fmt::print("\n{:.1f} million instructions/s on {} thread{}\n",
               static_cast<double>(instructions) / seconds / 1e6, options.simulation.threads,
               options.simulation.threads == 1 ? "" : "s");
  }
  options.json.write(document);
}

}  // namespace

void add_run(CLI::App& root) {
  CLI::App* const command = root.add_subcommand("run", "Run traces under schemes and compare them");
  const auto options = std::make_shared<RunArguments>();
  command->add_option("trace", options->traces, "Traces")->required();
  command
      ->add_option("--scheme", options->schemes,
                   "Schemes, beside traditional (default: all); see below")
      ->delimiter(',');
  command->add_option("--affinities", options->affinities, "Of source_destination; see below")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--model", options->model, "fast: one pass; stepped: cycle by cycle")
      ->check(CLI::IsMember({"fast", "stepped"}))
      ->capture_default_str();
  command
      ->add_option("--least-bytes", options->configuration.replay.least_copy_bytes,
                   "Copies of fewer bytes stay loops")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--most-bytes", options->configuration.replay.most_copy_bytes,
                   "Bytes of one bulk instruction at most")
      ->check(CLI::Range(1U, most_bulk_bytes))
      ->capture_default_str();
  command->add_flag("--fills", options->configuration.replay.fills,
                    "Replace memset and its like, too");
  command->add_flag("--cold", options->configuration.replay.cold_copies,
                    "No block of a copy is in the caches when it begins");
  options->json.add_to(*command);
  add_simulation_options(*command, options->simulation);
  add_machine_options(*command, options->configuration.parameters);
  command->footer(help_of_schemes() + "\n\n" + help_of_affinities());
  command->callback([options] { run(*options); });
}

}  // namespace bcisim::cli
