// Which CPUs this process may use, and which caches they share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"

namespace haul {

inline constexpr unsigned max_cpus = 1024;

struct CpuInfo {
  std::uint16_t cpu = 0;
  std::uint16_t core = 0;  // lowest CPU number of its core: CPUs with the same are siblings (SMT)
  std::uint16_t package = 0;
  std::uint16_t l3_group = 0;  // lowest CPU number that shares the last-level cache
  std::uint16_t node = 0;      // NUMA node
};

struct Topology {
  unsigned allowed_count = 0;
  CpuInfo allowed[max_cpus];  // the affinity mask (cpuset included), not all online; ascending
  unsigned online_count = 0;
  std::size_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;  // of allowed[0]; 0 where unknown
  std::size_t line_bytes = 64;
  double cpu_quota = 0;  // CPUs' worth of time by the cgroup (cpu.max or cfs quota), 0 = unlimited
};

// Reads sysfs below `root` ("" for the real one; tests pass a directory laid out like /) and the
// affinity mask of the calling thread; below another `root` the mask is the Cpus_allowed_list of
// its /proc/self/status, or all CPUs online. No allocation. Missing or unreadable files give the
// safe guess (one CPU a core, all of a package share one cache). CPUs numbered max_cpus and up are
// left out.
Expected<Topology> read_topology(const char* root) noexcept;

// A guess by the affinity mask of the calling thread alone, without reading a file: one CPU a core,
// all in one package with one cache, no quota.
Expected<Topology> guess_topology() noexcept;

// How far apart two CPUs are: 0 the same, 1 SMT siblings, 2 share the last-level cache, 3 same
// package, 4 further.
unsigned distance(const CpuInfo& a, const CpuInfo& b) noexcept;

// Fills `order` with indices of topology.allowed that a mover may take, best first: not
// `caller_cpu`, its SMT siblings only if there is nothing else, the nearest first, and among
// equally near ones one CPU of every core before the second of any. A `caller_cpu` that is not
// allowed (or unknown) is ignored. Returns how many (0 on a single CPU).
unsigned mover_candidates(const Topology& topology, unsigned caller_cpu, std::uint16_t* order,
                          unsigned max) noexcept;

}  // namespace haul
