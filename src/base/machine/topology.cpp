// Which CPUs there are and what they share, from sysfs and the affinity mask.
#include "base/machine/topology.hpp"

#include <sched.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/knobs.hpp"
#include "base/machine/cpu_quota.hpp"
#include "base/machine/sysfs.hpp"
#include "base/os/keep_errno.hpp"

namespace haul {

namespace {

// The affinity mask of the calling thread. 0 or -errno.
int read_affinity(CpuSet& set) noexcept {
  // The kernel refuses a buffer shorter than its own mask, which has 8192 bits at most.
  unsigned long words[8192 / (8 * sizeof(unsigned long))] = {};
  if (sched_getaffinity(0, sizeof words, reinterpret_cast<cpu_set_t*>(words)) != 0) return -errno;
  static_assert(sizeof set.words <= sizeof words && sizeof(unsigned long) == 8);
  memcpy(set.words, words, sizeof set.words);
  return 0;
}

bool read_status_mask(const FileTree& tree, CpuSet& set) noexcept {
  constexpr const char* key = "Cpus_allowed_list:";
  char text[4096];
  if (!tree.read(text, sizeof text, "/proc/self/status")) return false;
  char* line = strstr(text, key);
  if (line == nullptr) return false;
  line += strlen(key);
  line += strspn(line, " \t");
  line[strcspn(line, "\n")] = '\0';
  return parse_cpu_list(line, set);
}

bool read_cpu_list(const FileTree& tree, unsigned cpu, const char* file, CpuSet& set) noexcept {
  char text[4096];
  return tree.read(text, sizeof text, "/sys/devices/system/cpu/cpu%u/%s", cpu, file) &&
         parse_cpu_list(text, set) && set.has(cpu);
}

bool read_cpu_number(const FileTree& tree, unsigned cpu, const char* file,
                     unsigned long& value) noexcept {
  char text[64];
  return tree.read(text, sizeof text, "/sys/devices/system/cpu/cpu%u/%s", cpu, file) &&
         parse_number(text, value);
}

struct Cache {
  unsigned long level = 0;
  bool instruction = false;
};

bool read_cache(const FileTree& tree, unsigned cpu, unsigned index, Cache& cache) noexcept {
  char file[64];
  snprintf(file, sizeof file, "cache/index%u/level", index);
  if (!read_cpu_number(tree, cpu, file, cache.level)) return false;
  char type[32] = "";
  tree.read(type, sizeof type, "/sys/devices/system/cpu/cpu%u/cache/index%u/type", cpu, index);
  cache.instruction = strcmp(type, "Instruction") == 0;
  return true;
}

constexpr unsigned max_caches = 16;

// The lowest CPU that shares `cpu`'s last-level cache; max_cpus if sysfs does not say.
unsigned read_l3_group(const FileTree& tree, unsigned cpu) noexcept {
  unsigned group = max_cpus;
  unsigned long last_level = 1;  // a first-level cache says nothing about sharing
  for (unsigned index = 0; index < max_caches; ++index) {
    Cache cache;
    if (!read_cache(tree, cpu, index, cache)) break;
    if (cache.instruction || cache.level <= last_level) continue;
    char file[64];
    snprintf(file, sizeof file, "cache/index%u/shared_cpu_list", index);
    CpuSet sharers;
    if (!read_cpu_list(tree, cpu, file, sharers)) continue;
    last_level = cache.level;
    group = sharers.first();
  }
  return group;
}

void read_cache_sizes(const FileTree& tree, unsigned cpu, Topology& topology) noexcept {
  for (unsigned index = 0; index < max_caches; ++index) {
    Cache cache;
    if (!read_cache(tree, cpu, index, cache)) break;
    if (cache.instruction) continue;
    char text[64];
    constexpr const char* directory = "/sys/devices/system/cpu";
    if (tree.read(text, sizeof text, "%s/cpu%u/cache/index%u/size", directory, cpu, index)) {
      const auto parsed = parse_bytes(text);
      const std::size_t bytes = parsed ? *parsed : 0;
      if (cache.level == 1) topology.l1d_bytes = bytes;
      if (cache.level == 2) topology.l2_bytes = bytes;
      if (cache.level == 3) topology.l3_bytes = bytes;
    }
    unsigned long line = 0;
    if (tree.read(text, sizeof text, "%s/cpu%u/cache/index%u/coherency_line_size", directory, cpu,
                  index) &&
        parse_number(text, line) && line >= 16 && line <= 1024 && (line & (line - 1)) == 0) {
      topology.line_bytes = line;
    }
  }
}

void read_nodes(const FileTree& tree, Topology& topology) noexcept {
  char text[4096];
  CpuSet nodes;  // node numbers are below max_cpus too
  if (!tree.read(text, sizeof text, "/sys/devices/system/node/online") ||
      !parse_cpu_list(text, nodes)) {
    return;
  }
  for (unsigned node = 0; node < max_cpus; ++node) {
    CpuSet cpus;
    if (!nodes.has(node) ||
        !tree.read(text, sizeof text, "/sys/devices/system/node/node%u/cpulist", node) ||
        !parse_cpu_list(text, cpus)) {
      continue;
    }
    for (unsigned i = 0; i < topology.allowed_count; ++i) {
      if (cpus.has(topology.allowed[i].cpu)) {
        topology.allowed[i].node = static_cast<std::uint16_t>(node);
      }
    }
  }
}

void read_cpus(const FileTree& tree, const CpuSet& allowed, Topology& topology) noexcept {
  for (unsigned cpu = 0; cpu < max_cpus; ++cpu) {
    if (!allowed.has(cpu)) continue;
    CpuInfo& info = topology.allowed[topology.allowed_count++];
    info.cpu = static_cast<std::uint16_t>(cpu);
    info.core = info.cpu;
    CpuSet siblings;
    if (read_cpu_list(tree, cpu, "topology/core_cpus_list", siblings) ||
        read_cpu_list(tree, cpu, "topology/thread_siblings_list", siblings)) {
      info.core = static_cast<std::uint16_t>(siblings.first());
    }
    unsigned long package = 0;
    if (read_cpu_number(tree, cpu, "topology/physical_package_id", package) &&
        package <= UINT16_MAX) {
      info.package = static_cast<std::uint16_t>(package);
    }
    unsigned group = read_l3_group(tree, cpu);
    // Where sysfs does not say, all CPUs of a package share one cache.
    for (unsigned i = 0; group == max_cpus; ++i) {
      if (topology.allowed[i].package == info.package) group = topology.allowed[i].cpu;
    }
    info.l3_group = static_cast<std::uint16_t>(group);
  }
}

}  // namespace

Expected<Topology> read_topology(const char* root) noexcept {
  const KeepErrno keep;
  const FileTree tree(root);
  CpuSet online;
  char text[4096];
  const bool online_known = tree.read(text, sizeof text, "/sys/devices/system/cpu/online") &&
                            parse_cpu_list(text, online);
  CpuSet allowed;
  if (root[0] == '\0') {
    const int result = read_affinity(allowed);
    if (result != 0) {
      return make_error(Code::not_supported, -result,
                        "cannot read this thread's CPU affinity (%s); allow the system call "
                        "sched_getaffinity",
                        describe_errno(-result));
    }
  } else if (!read_status_mask(tree, allowed)) {
    allowed = online;
  }
  if (allowed.count() == 0) {
    return make_error(Code::not_supported, 0,
                      "no CPU below number %u is allowed to this thread; widen its affinity mask",
                      max_cpus);
  }
  Topology topology;
  topology.online_count = online_known ? online.count() : allowed.count();
  read_cpus(tree, allowed, topology);
  read_nodes(tree, topology);
  read_cache_sizes(tree, topology.allowed[0].cpu, topology);
  topology.cpu_quota = read_cpu_quota(tree);
  return topology;
}

Expected<Topology> guess_topology() noexcept {
  const KeepErrno keep;
  CpuSet allowed;
  const int result = read_affinity(allowed);
  if (result != 0 || allowed.count() == 0) {
    return make_error(Code::not_supported, -result,
                      "no CPU is known to be allowed to this thread; allow the system call "
                      "sched_getaffinity");
  }
  Topology topology;
  for (unsigned cpu = 0; cpu < max_cpus; ++cpu) {
    if (!allowed.has(cpu)) continue;
    CpuInfo& info = topology.allowed[topology.allowed_count++];
    info.cpu = info.core = static_cast<std::uint16_t>(cpu);
    info.l3_group = static_cast<std::uint16_t>(allowed.first());
  }
  topology.online_count = topology.allowed_count;
  return topology;
}

unsigned distance(const CpuInfo& a, const CpuInfo& b) noexcept {
  if (a.cpu == b.cpu) return 0;
  if (a.core == b.core && a.package == b.package) return 1;
  if (a.l3_group == b.l3_group) return 2;
  return a.package == b.package ? 3 : 4;
}

unsigned mover_candidates(const Topology& topology, unsigned caller_cpu, std::uint16_t* order,
                          unsigned max) noexcept {
  const CpuInfo* caller = nullptr;
  for (unsigned i = 0; i < topology.allowed_count; ++i) {
    if (topology.allowed[i].cpu == caller_cpu) caller = &topology.allowed[i];
  }
  unsigned distances[max_cpus];
  unsigned ranks[max_cpus];  // how many CPUs of the same core come before
  unsigned last_rank = 0;
  unsigned far_count = 0;  // CPUs that are neither the caller's nor siblings of it
  for (unsigned i = 0; i < topology.allowed_count; ++i) {
    const CpuInfo& info = topology.allowed[i];
    distances[i] = distance(caller != nullptr ? *caller : topology.allowed[0], info);
    if (caller == nullptr && distances[i] < 2) distances[i] = 2;  // no CPU is taken
    if (distances[i] >= 2) ++far_count;
    ranks[i] = 0;
    for (unsigned j = 0; j < i; ++j) {
      if (distance(topology.allowed[j], info) == 1) ++ranks[i];
    }
    if (ranks[i] > last_rank) last_rank = ranks[i];
  }
  const unsigned nearest = far_count != 0 ? 2 : 1;
  const unsigned furthest = far_count != 0 ? 4 : 1;
  unsigned count = 0;
  for (unsigned away = nearest; away <= furthest; ++away) {
    for (unsigned rank = 0; rank <= last_rank; ++rank) {
      for (unsigned i = 0; i < topology.allowed_count && count < max; ++i) {
        if (distances[i] == away && ranks[i] == rank)
          order[count++] = static_cast<std::uint16_t>(i);
      }
    }
  }
  return count;
}

}  // namespace haul
