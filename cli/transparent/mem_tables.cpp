#include "cli/transparent/mem_tables.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>

namespace haul::cli {
namespace {

using preload::Table;

WayCount counted(const preload::WayTally& tally) {
  return {tally.calls.load(), tally.bytes.load(), tally.ns.load()};
}

DistanceCount counted(const preload::DistanceTally& tally) {
  DistanceCount count;
  for (std::size_t i = 0; i < preload::distance_classes; ++i)
    count.calls[i] = tally.counts[i].load();
  return count;
}

SiteCount site_of(const preload::Site& from) {
  SiteCount site;
  for (std::size_t size = 0; size < preload::size_classes; ++size)
    site.distances[size] = {counted(from.distances[size].use), counted(from.distances[size].write)};
  if (from.named.load() != 0) {
    site.module.assign(from.module, strnlen(from.module, sizeof from.module));
    site.file_offset = from.file_offset;
  }
  for (std::size_t pages = 0; pages < preload::pages_count; ++pages) {
    for (std::size_t size = 0; size < preload::size_classes; ++size) {
      KindCount kind;
      kind.pages = static_cast<preload::Pages>(pages);
      kind.size_class = size;
      for (std::size_t way = 0; way < preload::way_count; ++way)
        kind.ways[way] = counted(from.kinds[pages][size].ways[way]);
      if (kind.all().calls != 0) site.kinds.push_back(kind);
    }
  }
  return site;
}

// The file belongs to a process that may have been killed while it was made, or to anybody.
std::unique_ptr<Table> load(const std::filesystem::path& path) {
  auto table = std::make_unique<Table>();
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(table.get()), sizeof(Table))) return nullptr;
  return table->magic == preload::table_magic ? std::move(table) : nullptr;
}

}  // namespace

void WayCount::add(const WayCount& more) {
  calls += more.calls;
  bytes += more.bytes;
  ns += more.ns;
}

WayCount KindCount::all() const {
  WayCount sum;
  for (const WayCount& way : ways) sum.add(way);
  return sum;
}

WayCount SiteCount::all() const {
  WayCount sum;
  for (const KindCount& kind : kinds) sum.add(kind.all());
  return sum;
}

std::uint64_t DistanceCount::all() const {
  return std::accumulate(calls.begin(), calls.end(), std::uint64_t{0});
}

void DistanceCount::add(const DistanceCount& more) {
  for (std::size_t i = 0; i < calls.size(); ++i) calls[i] += more.calls[i];
}

std::size_t DistanceCount::median_class() const {
  std::uint64_t below = 0;
  std::size_t which = 0;
  for (; which + 1 < calls.size(); ++which) {
    below += calls[which];
    if (2 * below >= all()) break;
  }
  return which;
}

DistancePair SiteCount::all_distances() const {
  DistancePair sum;
  for (const DistancePair& one : distances) {
    sum.use.add(one.use);
    sum.write.add(one.write);
  }
  return sum;
}

void SiteCount::add(const SiteCount& more) {
  for (std::size_t size = 0; size < distances.size(); ++size) {
    distances[size].use.add(more.distances[size].use);
    distances[size].write.add(more.distances[size].write);
  }
  for (const KindCount& kind : more.kinds) {
    const auto same = std::ranges::find_if(kinds, [&](const KindCount& other) {
      return other.pages == kind.pages && other.size_class == kind.size_class;
    });
    if (same == kinds.end()) {
      kinds.push_back(kind);
    } else {
      for (std::size_t way = 0; way < preload::way_count; ++way)
        same->ways[way].add(kind.ways[way]);
    }
  }
}

std::uint64_t SiteCount::bytes_with(preload::Pages pages) const {
  std::uint64_t bytes = 0;
  for (const KindCount& kind : kinds)
    if (kind.pages == pages) bytes += kind.all().bytes;
  return bytes;
}

std::vector<ProcessTable> read_tables(const std::string& directory) {
  std::vector<ProcessTable> processes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (!entry.is_regular_file(error)) continue;
    const std::unique_ptr<Table> table = load(entry.path());
    if (!table) continue;
    ProcessTable process;
    process.pid = table->pid;
    process.program.assign(table->program, strnlen(table->program, sizeof table->program));
    process.touches = table->touches.load();
    for (std::size_t i = 0; i < preload::refusal_count; ++i)
      process.refusals[i] = table->refusals[i].load();
    for (const preload::Site& site : table->sites) {
      if (site.address.load() == 0) continue;
      process.sites.push_back(site_of(site));
    }
    // (One that has become another program by exec could not remove its table.)
    if (process.sites.empty()) continue;
    std::ranges::sort(process.sites, std::ranges::greater{},
                      [](const SiteCount& site) { return site.all().ns; });
    processes.push_back(std::move(process));
  }
  std::ranges::sort(processes, {}, &ProcessTable::pid);
  return processes;
}

}  // namespace haul::cli
