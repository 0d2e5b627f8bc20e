// The rows that reports on call sites have in common.
#pragma once

#include <string>
#include <vector>

#include "cli/transparent/mem_tables.hpp"
#include "cli/transparent/symbols.hpp"

namespace haul::cli {

struct SiteRow {
  std::string program;
  SiteCount site;
  WayCount all;
};

// The sites of all processes, those of processes of one program together; most time first.
std::vector<SiteRow> rows_of(const std::vector<ProcessTable>& processes);

// "function (library)" or "library+0x1234".
std::string place_of(const SiteCount& site, Symbols& symbols);
// The last part of a path.
std::string base_name(const std::string& path);
// "43 %", or "-" of nothing.
std::string percent(std::uint64_t part, std::uint64_t whole);

}  // namespace haul::cli
