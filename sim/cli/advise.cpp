// bcisim advise: which affinities a caller of haul should ask for.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/choices.hpp"
#include "cli/commands.hpp"
#include "cli/table.hpp"
#include "study/advice.hpp"

namespace bcisim::cli {
namespace {

struct AdviseArguments {
  std::string trace;
  AdviceOptions advice;
  JsonOption json;
};

std::string_view haul_name(Affinity affinity) {
  constexpr std::array<std::string_view, 3> names{"HAUL_CACHEABLE", "HAUL_NEUTRAL",
                                                  "HAUL_NON_CACHEABLE"};
  return names[static_cast<std::size_t>(affinity)];
}

bool is_fill(const SiteAdvice& advice) {
  return advice.site.kind == CopyKind::fill;
}

std::uint64_t bytes_each(const ProfiledSite& site) {
  return site.bytes / std::max<std::uint64_t>(1, site.copies);
}

std::string sentence_of(const SiteAdvice& advice) {
  if (is_too_short(advice.site))
    return fmt::format("none; haul ignores affinities below {} bytes", least_affinity_bytes);
  const Affinities advised = advice.advised;
  std::string text;
  if (!is_fill(advice)) text += fmt::format("src_affinity = {}, ", haul_name(advised.source));
  text += fmt::format("dst_affinity = {}", haul_name(advised.destination));
  const bool is_default = advised.destination == haul_default.destination &&
                          (is_fill(advice) || advised.source == haul_default.source);
  return text + (is_default ? " (haul's default)" : "");
}

void print(const SiteAdvice& advice) {
  const ProfiledSite& site = advice.site;
  fmt::print("{} ({}, {} copies of {} bytes)\n", printable(place_of(site)), name_of(site.kind),
             site.copies, bytes_each(site));
  Table table({"  rank", "source", "destination", "program faster than with the last by %"});
  for (std::size_t i = 0; i < advice.ranking.size(); ++i) {
    const RankedAffinities& one = advice.ranking[i];
    table.add({fmt::format("  {}", i + 1),
               is_fill(advice) ? "-" : std::string(name_of(one.affinities.source)),
               std::string(name_of(one.affinities.destination)),
               fmt::format("{:.2f}", one.gain_percent)});
  }
  table.print();
  fmt::print("  advice: {}\n\n", sentence_of(advice));
}

nlohmann::json json_of(const SiteAdvice& advice) {
  const auto pair = [&advice](Affinities affinities) {
    nlohmann::json names{{"dst_affinity", haul_name(affinities.destination)}};
    if (!is_fill(advice)) names["src_affinity"] = haul_name(affinities.source);
    return names;
  };
  nlohmann::json ranking = nlohmann::json::array();
  for (const RankedAffinities& one : advice.ranking) {
    nlohmann::json row = pair(one.affinities);
    row["cycles"] = one.cycles;
    row["gain_percent"] = one.gain_percent;
    ranking.push_back(std::move(row));
  }
  const bool is_ignored = is_too_short(advice.site);
  return {{"place", place_of(advice.site)},
          {"kind", name_of(advice.site.kind)},
          {"copies", advice.site.copies},
          {"bytes_each", bytes_each(advice.site)},
          {"ranking", ranking},
          {"ignored_by_haul", is_ignored},
          {"advice", is_ignored ? nlohmann::json() : pair(advice.advised)}};
}

void advise(const AdviseArguments& options) {
  refuse_pipes({options.trace});
  const std::vector<SiteAdvice> all =
      with_progress(options.advice.simulation, [&](const SimulationOptions& simulation) {
        return bcisim::advise(options.trace, {options.advice.sites, simulation});
      }).first;
  nlohmann::json document = nlohmann::json::array();
  for (const SiteAdvice& one : all) document.push_back(json_of(one));
  if (!options.json.takes_place_of_text()) {
    if (all.empty()) fmt::print("nothing is copied in {}\n", printable(options.trace));
    for (const SiteAdvice& one : all) print(one);
  }
  options.json.write(document);
}

}  // namespace

void add_advise(CLI::App& root) {
  CLI::App* const command = root.add_subcommand(
      "advise", "Rank the cache affinities of each place that copies, for haul's requests");
  const auto options = std::make_shared<AdviseArguments>();
  command->add_option("trace", options->trace, "The trace")->required();
  command->add_option("--sites", options->advice.sites, "How many places, those that copy most")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  options->json.add_to(*command);
  add_simulation_options(*command, options->advice.simulation);
  command->footer(help_of_affinities());
  command->callback([options] { advise(*options); });
}

}  // namespace bcisim::cli
