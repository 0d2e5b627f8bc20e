#include "cli/transparent/site_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace haul::cli {

std::vector<SiteRow> rows_of(const std::vector<ProcessTable>& processes) {
  std::map<std::tuple<std::string, std::string, std::uint64_t>, SiteCount> sites;
  for (const ProcessTable& process : processes) {
    for (const SiteCount& site : process.sites) {
      SiteCount& sum = sites[{process.program, site.module, site.file_offset}];
      sum.module = site.module;
      sum.file_offset = site.file_offset;
      sum.add(site);
    }
  }
  std::vector<SiteRow> rows;
  for (auto& [place, site] : sites) {
    const WayCount all = site.all();
    rows.push_back({std::get<0>(place), std::move(site), all});
  }
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const SiteRow& row) { return row.all.ns; });
  return rows;
}

std::string place_of(const SiteCount& site, Symbols& symbols) {
  if (site.module.empty()) return "?";
  const std::string name = symbols.name_at(site.module, site.file_offset);
  return name.empty() ? fmt::format("{}+{:#x}", base_name(site.module), site.file_offset)
                      : fmt::format("{} ({})", name, base_name(site.module));
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "-" : fmt::format("{} %", (100 * part + whole / 2) / whole);
}

}  // namespace haul::cli
