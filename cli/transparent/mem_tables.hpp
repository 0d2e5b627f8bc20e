// What processes under libhaul-mem.so counted, as plain numbers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "preload/mem/sites.hpp"

namespace haul::cli {

struct WayCount {
  std::uint64_t calls = 0, bytes = 0, ns = 0;
  void add(const WayCount& more);
};

// One place in a program, one state of the destination's pages, one class of lengths.
struct KindCount {
  preload::Pages pages = preload::Pages::there;
  std::size_t size_class = 0;
  std::array<WayCount, preload::way_count> ways{};

  WayCount all() const;
  std::size_t from_bytes() const { return preload::least_bytes << (2 * size_class); }
};

// Sampled calls by how long after them something happened (preload/mem/sites.hpp).
struct DistanceCount {
  std::array<std::uint64_t, preload::distance_classes> calls{};

  std::uint64_t all() const;
  void add(const DistanceCount& more);
  // The class in which the median lies; only where there are any.
  std::size_t median_class() const;
};

// Of one class of lengths.
struct DistancePair {
  DistanceCount use, write;  // the destination's first use; the source's first write
};

struct SiteCount {
  std::string module;  // path; "" if unknown
  std::uint64_t file_offset = 0;
  std::vector<KindCount> kinds;
  std::array<DistancePair, preload::size_classes> distances{};

  WayCount all() const;
  // Adds what was counted at the same place of another process.
  void add(const SiteCount& more);
  // Of all lengths.
  DistancePair all_distances() const;
  // Of calls whose destination's pages were like that.
  std::uint64_t bytes_with(preload::Pages pages) const;
};

struct ProcessTable {
  unsigned pid = 0;
  std::string program;
  std::array<std::uint64_t, preload::refusal_count> refusals{};
  std::uint64_t touches = 0;
  std::vector<SiteCount> sites;  // most time first
};

// The tables in a directory in which a call was counted, as they are now; those of running
// processes too. Files that are none are passed over.
std::vector<ProcessTable> read_tables(const std::string& directory);

}  // namespace haul::cli
