// bcisim advise: which affinities a caller of haul should ask for.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.hpp"
#include "cli/table.hpp"
#include "study/advice.hpp"

namespace bcisim::cli {
namespace {

std::string_view haul_name(Affinity affinity) {
  switch (affinity) {
    case Affinity::cacheable: return "HAUL_CACHEABLE";
    case Affinity::neutral: return "HAUL_NEUTRAL";
    case Affinity::non_cacheable: break;
  }
  return "HAUL_NON_CACHEABLE";
}

void print(const SiteAdvice& advice) {
  // Less than that is noise of one trace.
  constexpr double telling_percent = 0.05;
  const ProfiledSite& site = advice.site;
  fmt::print("{} ({}, {} copies of {} bytes)\n",
             site.name.empty() ? fmt::format("{:#x}", site.address) : site.name, name_of(site.kind),
             site.copies, site.bytes / std::max<std::uint64_t>(1, site.copies));
  const bool is_fill = site.kind == CopyKind::fill;
  Table table({"  rank", "source", "destination", "program faster than with the last by %"});
  for (std::size_t i = 0; i < advice.ranking.size(); ++i) {
    const RankedAffinities& one = advice.ranking[i];
    table.add({fmt::format("  {}", i + 1),
               is_fill ? "-" : std::string(name_of(one.affinities.source)),
               std::string(name_of(one.affinities.destination)),
               fmt::format("{:.2f}", one.gain_percent)});
  }
  table.print();
  const RankedAffinities& best = advice.ranking.front();
  if (best.gain_percent < telling_percent) {
    fmt::print("  advice: none; its affinities make no difference here\n\n");
  } else if (is_fill) {
    fmt::print("  advice: dst_affinity = {}\n\n", haul_name(best.affinities.destination));
  } else {
    fmt::print("  advice: src_affinity = {}, dst_affinity = {}\n\n",
               haul_name(best.affinities.source), haul_name(best.affinities.destination));
  }
}

}  // namespace

void add_advise(CLI::App& root) {
  CLI::App* const command = root.add_subcommand(
      "advise", "Rank the cache affinities of each place that copies, for haul's requests");
  struct Options {
    std::string trace;
    AdviceOptions advice;
  };
  const auto options = std::make_shared<Options>();
  command->add_option("trace", options->trace, "The trace")->required();
  command->add_option("--sites", options->advice.sites, "How many places, those that copy most")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  add_threads_option(*command, options->advice.threads);
  add_instructions_option(*command, options->advice.instructions);
  command->callback([options] {
    Progress progress("simulating");
    options->advice.progress = progress.callback();
    const std::vector<SiteAdvice> all = advise(options->trace, options->advice);
    progress.clear();
    if (all.empty()) fmt::print("nothing is copied in {}\n", options->trace);
    for (const SiteAdvice& one : all) print(one);
  });
}

}  // namespace bcisim::cli
