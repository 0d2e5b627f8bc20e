#include "cli/transparent/way_reasons.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/kit/table.hpp"
#include "cli/transparent/mem_report.hpp"
#include "cli/transparent/site_rows.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

using preload::Pages;
using preload::Way;

double ns_per_mib(const WayCount& way) {
  constexpr double mib = 1 << 20;
  return way.bytes == 0 ? 0 : static_cast<double>(way.ns) * mib / static_cast<double>(way.bytes);
}

std::string show_speed(const WayCount& way) {
  return way.bytes == 0 ? "-" : tools::show_ns(ns_per_mib(way));
}

// The rules are those of preload/mem/choice.cpp.
std::string reason_of(const KindCount& kind) {
  const auto& [libc, caller, together, deferred, protected_] = kind.ways;
  if (protected_.calls != 0) return "protected where it can be, as HAUL_TRANSPARENT_PLAN asks";
  if (deferred.calls != 0) {
    WayCount others = libc;
    others.add(caller);
    others.add(together);
    if (others.calls == 0) return "deferred, as HAUL_TRANSPARENT_PLAN asks";
    return deferred.calls > others.calls
               ? "deferred: the first use is far off, and few waited for the bytes"
               : "deferring was tried, and is not worth its waits, or not always possible";
  }
  if (kind.pages != Pages::missing) {
    constexpr std::size_t shared_from_bytes = std::size_t{4} << 20;
    if (kind.from_bytes() < shared_from_bytes && together.calls == 0)
      return "libc: the pages are there, and two cores gain nothing below 4 MiB";
    if (together.calls == 0) return "libc: the pages are there, and sharing was not tried yet";
    return ns_per_mib(together) < ns_per_mib(libc) ? "together: it was faster than libc"
                                                   : "libc: sharing was tried and is no faster";
  }
  if (caller.calls == 0) return libc.calls != 0 ? "libc, as HAUL_TRANSPARENT_PLAN asks" : "-";
  if (together.calls == 0)
    return "caller: it makes the missing pages; sharing was not tried yet (from 10 ms on)";
  return ns_per_mib(together) < ns_per_mib(caller)
             ? "together: it was faster than the caller alone"
             : "caller: it makes the missing pages; sharing was tried and is no faster";
}

bool is_process(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// Where that process leaves what it counts.
std::string report_directory(const std::string& process) {
  std::ifstream file("/proc/" + process + "/environ", std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  const std::string wanted = "HAUL_TRANSPARENT_REPORT=";
  for (std::size_t at = 0; at < all.size(); at = all.find('\0', at) + 1) {
    if (all.compare(at, wanted.size(), wanted) == 0)
      return all.substr(at + wanted.size(), all.find('\0', at) - at - wanted.size());
    if (all.find('\0', at) == std::string::npos) break;
  }
  throw tools::CommandFailure(fmt::format(
      "process {} does not run under `haul run --transparent --report`, or is not yours; start it "
      "so",
      process));
}

std::vector<ProcessTable> tables_of_process(const std::string& process) {
  std::vector<ProcessTable> tables = read_tables(report_directory(process));
  std::erase_if(tables,
                [&](const ProcessTable& table) { return std::to_string(table.pid) != process; });
  if (tables.empty())
    throw tools::CommandFailure(
        fmt::format("process {} has made no large copy yet; ask again later", process));
  return tables;
}

std::vector<ProcessTable> tables_of_file(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    throw tools::CommandFailure(fmt::format(
        "cannot read {}; give a process, or the file of `haul run --transparent --report --json`",
        path));
  try {
    return tables_of(nlohmann::json::parse(file));
  } catch (const nlohmann::json::exception&) {
    throw tools::CommandFailure(fmt::format(
        "{} is no report of `haul run --transparent --report --json`; write one so", path));
  }
}

}  // namespace

void explain_ways(const std::string& process_or_file) {
  TransparentOutcome outcome;
  outcome.processes = is_process(process_or_file) ? tables_of_process(process_or_file)
                                                  : tables_of_file(process_or_file);
  TextTable table({{"called from", Align::left},
                   {"pages", Align::left},
                   {"from", Align::right},
                   {"calls", Align::right},
                   {"libc", Align::right},
                   {"caller", Align::right},
                   {"together", Align::right},
                   {"deferred", Align::right},
                   {"protected", Align::right},
                   {"goes by", Align::left}});
  Symbols symbols;
  for (const SiteRow& row : rows_of(outcome.processes)) {
    for (const KindCount& kind : row.site.kinds) {
      const auto& [libc, caller, together, deferred, protected_] = kind.ways;
      table.add({place_of(row.site, symbols), kind.pages == Pages::missing ? "missing" : "there",
                 tools::show_bytes(kind.from_bytes()), fmt::format("{}", kind.all().calls),
                 show_speed(libc), show_speed(caller), show_speed(together), show_speed(deferred),
                 show_speed(protected_), reason_of(kind)});
    }
  }
  fmt::print("Time of the calling thread for a MiB, by each way that was taken:\n");
  for (const std::string& line : table.lines()) fmt::print("{}\n", line);
  print_refusals(stdout, outcome);
}

}  // namespace haul::cli
