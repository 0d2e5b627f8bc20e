#include "cli/transparent/profile_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/kit/table.hpp"
#include "cli/transparent/site_rows.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

using preload::Pages;
using Json = nlohmann::ordered_json;
using tools::show_bytes;
using tools::show_ns;

constexpr std::size_t profile_sites = 20;
// Below this share of the CPU time no gain is worth a word.
constexpr double worth_share = 0.02;

struct Spared {
  double caller_ns = 0, together_ns = 0, best_ns = 0;
  double deferred_ns = 0;  // more, at most
};

// Of the sampled calls, the share whose destination was first used later than such a call takes.
double far_share(const DistanceCount& use, double call_ns) {
  std::uint64_t far = 0;
  for (std::size_t i = 0; i < use.calls.size(); ++i)
    if (preload::is_as_far(i, static_cast<std::uint64_t>(call_ns))) far += use.calls[i];
  return use.all() == 0 ? 0 : static_cast<double>(far) / static_cast<double>(use.all());
}

Spared spared_at(const SiteCount& site, Gains& gains) {
  Spared spared;
  for (const KindCount& kind : site.kinds) {
    const auto ns = static_cast<double>(kind.all().ns);
    const Gain& gain = gains.of(kind.pages, kind.size_class);
    spared.caller_ns += ns * (1 - gain.caller);
    spared.together_ns += ns * (1 - gain.together);
    const double best = std::min({1.0, gain.caller, gain.together});
    spared.best_ns += ns * (1 - best);
    if (kind.pages == Pages::missing && kind.from_bytes() >= preload::deferred_from_bytes)
      spared.deferred_ns += ns * best *
                            far_share(site.distances[kind.size_class].use,
                                      ns * best / static_cast<double>(kind.all().calls));
  }
  return spared;
}

void add(Spared& sum, const Spared& more) {
  sum.caller_ns += more.caller_ns;
  sum.together_ns += more.together_ns;
  sum.best_ns += more.best_ns;
  sum.deferred_ns += more.deferred_ns;
}

std::string show_gain(double ns) {
  return std::abs(ns) < 1000 ? "-" : (ns < 0 ? "-" : "") + show_ns(std::abs(ns));
}

// The lengths between which nine tenths of the bytes lie, by classes.
std::string show_sizes(const SiteCount& site) {
  std::size_t least = preload::size_classes, most = 0;
  for (const KindCount& kind : site.kinds) {
    least = std::min(least, kind.size_class);
    most = std::max(most, kind.size_class);
  }
  const std::string from = show_bytes(preload::least_bytes << (2 * least));
  return most + 1 == preload::size_classes
             ? fmt::format("{} and more", from)
             : fmt::format("{} to {}", from, show_bytes(preload::least_bytes << (2 * most + 2)));
}

// The median, as the class in which it lies.
std::string show_distance(const DistanceCount& count) {
  if (count.all() == 0) return "-";
  const std::size_t which = count.median_class();
  if (which == preload::distance_never) return "never";
  const auto bound = [](std::size_t at) {
    return show_ns(static_cast<double>(preload::distance_below_ns(at)));
  };
  return which + 1 == preload::distance_never ? "> " + bound(which - 1) : "< " + bound(which);
}

Json distance_document(const DistanceCount& count) {
  Json document = Json::array();
  for (std::size_t i = 0; i < preload::distance_never - 1; ++i)
    document.push_back({{"below_ns", preload::distance_below_ns(i)}, {"calls", count.calls[i]}});
  return {{"within", document},
          {"later", count.calls[preload::distance_never - 1]},
          {"never", count.calls[preload::distance_never]}};
}

double cpu_ns(const TransparentOutcome& outcome) {
  return std::max(outcome.cpu_s * 1e9, 1.0);
}

void print_verdict(std::FILE* stream, const TransparentOutcome& outcome, const WayCount& all,
                   const Spared& spared) {
  fmt::print(
      stream,
      "Copies and fills of 32 KiB and more: {} calls of {} in {}, {:.0f} % of the {:.2f} s of "
      "CPU time.\n",
      all.calls, show_bytes(all.bytes), show_ns(static_cast<double>(all.ns)),
      100 * static_cast<double>(all.ns) / cpu_ns(outcome), outcome.cpu_s);
  if (spared.best_ns + spared.deferred_ns < worth_share * cpu_ns(outcome)) {
    fmt::print(stream, "haul would not help this program.\n");
    return;
  }
  fmt::print(
      stream,
      "`haul run --transparent` would spare about {} ({:.0f} %): {} if the caller makes missing "
      "pages first, {} if a mover shares the work. (Judged by copies like these, made here "
      "just now.)\n",
      show_ns(spared.best_ns), 100 * spared.best_ns / cpu_ns(outcome), show_gain(spared.caller_ns),
      show_gain(spared.together_ns));
  if (spared.deferred_ns >= worth_share * cpu_ns(outcome))
    fmt::print(stream,
               "Up to {} more if calls whose destination is first used later than they take return "
               "before their bytes are there, which is tried there.\n",
               show_gain(spared.deferred_ns));
}

}  // namespace

void print_profile(std::FILE* stream, const TransparentOutcome& outcome, Gains& gains) {
  TextTable table({{"program", Align::left},
                   {"called from", Align::left},
                   {"calls", Align::right},
                   {"bytes", Align::right},
                   {"sizes", Align::left},
                   {"time", Align::right},
                   {"CPU", Align::right},
                   {"GB/s", Align::right},
                   {"new", Align::right},
                   {"huge", Align::right},
                   {"used", Align::right},
                   {"source written", Align::right},
                   {"would spare", Align::right}});
  Symbols symbols;
  WayCount all;
  Spared spared;
  std::size_t shown = 0;
  const std::vector<SiteRow> rows = rows_of(outcome.processes);
  for (const SiteRow& row : rows) {
    const Spared here = spared_at(row.site, gains);
    add(spared, here);
    all.add(row.all);
    if (++shown > profile_sites) continue;
    const std::uint64_t asked = row.all.bytes - row.site.bytes_with(Pages::unasked);
    const double ns = static_cast<double>(std::max<std::uint64_t>(row.all.ns, 1));
    const DistancePair distances = row.site.all_distances();
    table.add({base_name(row.program), place_of(row.site, symbols),
               fmt::format("{}", row.all.calls), show_bytes(row.all.bytes), show_sizes(row.site),
               show_ns(ns), fmt::format("{:.1f} %", 100 * ns / cpu_ns(outcome)),
               fmt::format("{:.1f}", static_cast<double>(row.all.bytes) / ns),
               percent(row.site.bytes_with(Pages::missing), asked),
               percent(row.site.bytes_with(Pages::huge), asked), show_distance(distances.use),
               show_distance(distances.write), show_gain(here.best_ns)});
  }
  if (!rows.empty())
    for (const std::string& line : table.lines()) fmt::print(stream, "{}\n", line);
  if (rows.size() > profile_sites)
    fmt::print(stream, "... and {} places more (--json names all).\n", rows.size() - profile_sites);
  print_verdict(stream, outcome, all, spared);
}

nlohmann::ordered_json profile_document(const TransparentOutcome& outcome, Gains& gains) {
  static constexpr const char* page_names[preload::pages_count] = {"resident", "new", "huge",
                                                                   "not_asked"};
  Json document = {
      {"exit_status", outcome.status}, {"wall_s", outcome.wall_s}, {"cpu_s", outcome.cpu_s}};
  document["sites"] = Json::array();
  Symbols symbols;
  for (const SiteRow& row : rows_of(outcome.processes)) {
    const Spared spared = spared_at(row.site, gains);
    Json kinds = Json::array();
    for (const KindCount& kind : row.site.kinds) {
      const WayCount count = kind.all();
      kinds.push_back({{"from_bytes", kind.from_bytes()},
                       {"destination", page_names[static_cast<std::size_t>(kind.pages)]},
                       {"calls", count.calls},
                       {"bytes", count.bytes},
                       {"ns", count.ns}});
    }
    Json distances = Json::array();
    for (std::size_t size = 0; size < preload::size_classes; ++size) {
      const auto& [use, write] = row.site.distances[size];
      if (use.all() + write.all() == 0) continue;
      distances.push_back({{"from_bytes", preload::least_bytes << (2 * size)},
                           {"first_use", distance_document(use)},
                           {"source_write", distance_document(write)}});
    }
    document["sites"].push_back(
        {{"program", row.program},
         {"module", row.site.module},
         {"file_offset", row.site.file_offset},
         {"function", symbols.name_at(row.site.module, row.site.file_offset)},
         {"calls", row.all.calls},
         {"bytes", row.all.bytes},
         {"ns", row.all.ns},
         {"cpu_share", static_cast<double>(row.all.ns) / cpu_ns(outcome)},
         {"caller_spares_ns", spared.caller_ns},
         {"together_spares_ns", spared.together_ns},
         {"deferred_spares_ns", spared.deferred_ns},
         {"kinds", kinds},
         {"distances", distances}});
  }
  return document;
}

}  // namespace haul::cli
