#include "cli/transparent/mem_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/kit/table.hpp"
#include "cli/transparent/site_rows.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

using Json = nlohmann::ordered_json;
using tools::show_bytes;
using tools::show_ns;

constexpr const char* way_names[preload::way_count] = {"libc", "caller", "together", "deferred",
                                                       "protected"};
constexpr std::size_t shown_sites = 20;

struct RefusalText {
  const char* key;
  const char* sentence;
};
constexpr RefusalText refusal_texts[preload::refusal_count] = {
    {"handled_faults",
     "the program handles SIGSEGV or SIGBUS, which a mover's thread must not raise"},
    {"not_calm",
     "no mover could be made there: signals were blocked, or the call came from the module that "
     "holds malloc"},
    {"no_mover", "haul had no room or no core for them in this process (`haul info` says why)"},
    {"no_userfault",
     "nobody could serve those who touch deferred bytes (`haul info` says why, at engine uffd)"},
    {"not_private",
     "a side of a copy to be deferred or protected is a file's or shared, or holds a stack"},
    {"not_writable",
     "the kernel lets nobody write to protected memory (`haul info` says why, at engine "
     "procmem), or the program's memory is limited (ulimit -d)"}};

std::uint64_t way_bytes(const SiteCount& site, std::size_t way) {
  std::uint64_t bytes = 0;
  for (const KindCount& kind : site.kinds) bytes += kind.ways[way].bytes;
  return bytes;
}

// All but the last one, which is only taken where it was asked for.
std::size_t shown_ways(const std::vector<SiteRow>& rows) {
  constexpr auto last = static_cast<std::size_t>(preload::Way::protected_);
  static_assert(last == preload::way_count - 1);
  const bool any = std::any_of(rows.begin(), rows.end(),
                               [](const SiteRow& row) { return way_bytes(row.site, last) != 0; });
  return any ? preload::way_count : last;
}

double spared_ns(const SiteCount& site, Gains& gains) {
  double ns = 0;
  for (const KindCount& kind : site.kinds) ns += gains.spared_ns(kind);
  return ns;
}

std::string show_spared(double ns) {
  return ns == 0 ? "-" : (ns < 0 ? "-" : "") + show_ns(std::abs(ns));
}

}  // namespace

void print_refusals(std::FILE* stream, const TransparentOutcome& outcome) {
  for (std::size_t i = 0; i < preload::refusal_count; ++i) {
    std::uint64_t calls = 0;
    for (const ProcessTable& process : outcome.processes) calls += process.refusals[i];
    if (calls != 0)
      fmt::print(stream, "{} calls were not given to a mover: {}.\n", calls,
                 refusal_texts[i].sentence);
  }
}

void print_copies(std::FILE* stream, const TransparentOutcome& outcome, Gains& gains) {
  const std::vector<SiteRow> rows = rows_of(outcome.processes);
  if (rows.empty()) {
    fmt::print(
        stream,
        "haul: nothing copied or set as much as HAUL_TRANSPARENT_FROM_BYTES at a time, so there "
        "is nothing to gain.\n");
    return;
  }
  std::vector<TextTable::Column> columns = {{"program", Align::left}, {"called from", Align::left}};
  for (const char* title : {"calls", "bytes", "time", "GB/s", "new"})
    columns.push_back({title, Align::right});
  const std::size_t ways = shown_ways(rows);
  for (std::size_t way = 0; way < ways; ++way) columns.push_back({way_names[way], Align::right});
  columns.push_back({"spared", Align::right});
  TextTable table(columns);
  Symbols symbols;
  double spared = 0;
  WayCount all;
  for (const SiteRow& row : rows) {
    const double site_spared = spared_ns(row.site, gains);
    spared += site_spared;
    all.add(row.all);
    if (&row - rows.data() >= static_cast<std::ptrdiff_t>(shown_sites)) continue;
    std::vector<std::string> cells = {
        base_name(row.program),
        place_of(row.site, symbols),
        fmt::format("{}", row.all.calls),
        show_bytes(row.all.bytes),
        show_ns(static_cast<double>(row.all.ns)),
        fmt::format("{:.1f}", static_cast<double>(row.all.bytes) /
                                  static_cast<double>(std::max<std::uint64_t>(row.all.ns, 1))),
        percent(row.site.bytes_with(preload::Pages::missing), row.all.bytes)};
    for (std::size_t way = 0; way < ways; ++way)
      cells.push_back(percent(way_bytes(row.site, way), row.all.bytes));
    cells.push_back(show_spared(site_spared));
    table.add(std::move(cells));
  }
  for (const std::string& line : table.lines()) fmt::print(stream, "{}\n", line);
  if (rows.size() > shown_sites)
    fmt::print(stream, "... and {} places more (--json names all).\n", rows.size() - shown_sites);
  constexpr double nothing_ns = 1000;
  const std::string libc_alone =
      std::abs(spared) < nothing_ns
          ? "as long"
          : fmt::format("{} {}", show_ns(std::abs(spared)), spared < 0 ? "less" : "more");
  fmt::print(
      stream,
      "{} large copies and fills of {} in {} of {:.2f} s; by libc alone they would have taken "
      "about {}.\n",
      all.calls, show_bytes(all.bytes), show_ns(static_cast<double>(all.ns)), outcome.wall_s,
      libc_alone);
  std::uint64_t touches = 0;
  for (const ProcessTable& process : outcome.processes) touches += process.touches;
  if (touches != 0)
    fmt::print(stream, "Bytes of calls that had returned were waited for {} times.\n", touches);
  print_refusals(stream, outcome);
}

nlohmann::ordered_json copies_document(const TransparentOutcome& outcome, Gains& gains) {
  Json document = {{"exit_status", outcome.status}, {"wall_s", outcome.wall_s}};
  document["processes"] = Json::array();
  Symbols symbols;
  for (const ProcessTable& process : outcome.processes) {
    Json refusals, sites = Json::array();
    for (std::size_t i = 0; i < preload::refusal_count; ++i)
      refusals[refusal_texts[i].key] = process.refusals[i];
    for (const SiteCount& site : process.sites) {
      Json kinds = Json::array();
      for (const KindCount& kind : site.kinds) {
        Json ways;
        for (std::size_t way = 0; way < preload::way_count; ++way)
          ways[way_names[way]] = {{"calls", kind.ways[way].calls},
                                  {"bytes", kind.ways[way].bytes},
                                  {"ns", kind.ways[way].ns}};
        kinds.push_back({{"new", kind.pages == preload::Pages::missing},
                         {"from_bytes", kind.from_bytes()},
                         {"ways", ways},
                         {"spared_ns", gains.spared_ns(kind)}});
      }
      sites.push_back({{"module", site.module},
                       {"file_offset", site.file_offset},
                       {"function", symbols.name_at(site.module, site.file_offset)},
                       {"kinds", kinds}});
    }
    document["processes"].push_back({{"pid", process.pid},
                                     {"program", process.program},
                                     {"touches", process.touches},
                                     {"refusals", refusals},
                                     {"sites", sites}});
  }
  return document;
}

std::vector<ProcessTable> tables_of(const nlohmann::json& document) {
  std::vector<ProcessTable> processes;
  for (const auto& from : document.at("processes")) {
    ProcessTable process;
    process.pid = from.at("pid");
    process.program = from.at("program");
    process.touches = from.at("touches");
    for (std::size_t i = 0; i < preload::refusal_count; ++i)
      process.refusals[i] = from.at("refusals").at(refusal_texts[i].key);
    for (const auto& place : from.at("sites")) {
      SiteCount site;
      site.module = place.at("module");
      site.file_offset = place.at("file_offset");
      for (const auto& calls : place.at("kinds")) {
        KindCount kind;
        kind.pages = calls.at("new") ? preload::Pages::missing : preload::Pages::there;
        kind.size_class = preload::size_class(calls.at("from_bytes"));
        for (std::size_t way = 0; way < preload::way_count; ++way) {
          const auto& count = calls.at("ways").at(way_names[way]);
          kind.ways[way] = {count.at("calls"), count.at("bytes"), count.at("ns")};
        }
        site.kinds.push_back(kind);
      }
      process.sites.push_back(std::move(site));
    }
    processes.push_back(std::move(process));
  }
  return processes;
}

}  // namespace haul::cli
