#include "base/machine/topology.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "base/machine/cpu_quota.hpp"
#include "base/machine/sysfs.hpp"
#include "unit/base/temp_dir.hpp"

namespace haul {
namespace {

const std::string cpu_directory = "sys/devices/system/cpu/";

// A machine as sysfs shows it. CPU n's siblings, caches and package are given by functions of n.
class FakeMachine {
 public:
  void online(const std::string& list) const { dir_.write(cpu_directory + "online", list + "\n"); }
  void allow(const std::string& list) const {
    dir_.write("proc/self/status",
               "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t" + list + "\nMems_allowed:\t1\n");
  }
  void cpu(unsigned number, const std::string& siblings, const std::string& l3_sharers,
           unsigned package) const {
    const std::string at = cpu_directory + "cpu" + std::to_string(number) + "/";
    dir_.write(at + "topology/thread_siblings_list", siblings + "\n");
    dir_.write(at + "topology/physical_package_id", std::to_string(package) + "\n");
    if (number > 1) {  // the first two have all that sysfs has, to spare files
      dir_.write(at + "cache/index0/level", "3\n");
      dir_.write(at + "cache/index0/shared_cpu_list", l3_sharers + "\n");
      return;
    }
    cache(number, 0, 1, "Data", "48K", siblings);
    cache(number, 1, 1, "Instruction", "32K", siblings);
    cache(number, 2, 2, "Unified", "2048K", siblings);
    cache(number, 3, 3, "Unified", "32768K", l3_sharers);
  }
  void cache(unsigned number, unsigned index, unsigned level, const std::string& type,
             const std::string& size, const std::string& sharers) const {
    const std::string at = cpu_directory + "cpu" + std::to_string(number) + "/cache/index" +
                           std::to_string(index) + "/";
    dir_.write(at + "level", std::to_string(level) + "\n");
    dir_.write(at + "type", type + "\n");
    dir_.write(at + "size", size + "\n");
    dir_.write(at + "shared_cpu_list", sharers + "\n");
    dir_.write(at + "coherency_line_size", "64\n");
  }
  void file(const std::string& name, const std::string& text) const { dir_.write(name, text); }
  Topology read() const {
    auto topology = read_topology(dir_.path().c_str());
    EXPECT_TRUE(topology);
    return topology ? *topology : Topology{};
  }
  const test::TempDir& dir() const { return dir_; }

 private:
  test::TempDir dir_;
};

// Two packages, each of two L3 groups of two cores with two threads: 16 CPUs, siblings 8 apart.
void two_packages(const FakeMachine& machine) {
  machine.online("0-15");
  for (unsigned cpu = 0; cpu < 16; ++cpu) {
    const unsigned core = cpu % 8;
    const unsigned group = core / 2 * 2;
    const auto text = [](unsigned number) { return std::to_string(number); };
    machine.cpu(cpu, text(core) + "," + text(core + 8),
                text(group) + "-" + text(group + 1) + "," + text(group + 8) + "-" + text(group + 9),
                core / 4);
  }
}

std::vector<unsigned> candidates(const Topology& topology, unsigned caller,
                                 unsigned max = max_cpus) {
  std::vector<std::uint16_t> order(max);
  const unsigned count = mover_candidates(topology, caller, order.data(), max);
  std::vector<unsigned> cpus;
  for (unsigned i = 0; i < count; ++i) cpus.push_back(topology.allowed[order[i]].cpu);
  return cpus;
}

TEST(Topology, TwoPackagesWithTwoGroupsEach) {
  FakeMachine machine;
  two_packages(machine);
  const Topology topology = machine.read();
  ASSERT_EQ(topology.allowed_count, 16u);
  EXPECT_EQ(topology.online_count, 16u);
  for (unsigned i = 0; i < 16; ++i) {
    const CpuInfo& info = topology.allowed[i];
    EXPECT_EQ(info.cpu, i);
    EXPECT_EQ(info.core, i % 8);
    EXPECT_EQ(info.package, i % 8 / 4);
    EXPECT_EQ(info.l3_group, i % 8 / 2 * 2);
    EXPECT_EQ(info.node, 0);
  }
  const auto from_0 = [&](unsigned cpu) {
    return distance(topology.allowed[0], topology.allowed[cpu]);
  };
  EXPECT_EQ(from_0(0), 0u);
  EXPECT_EQ(from_0(8), 1u);
  EXPECT_EQ(from_0(1), 2u);
  EXPECT_EQ(from_0(9), 2u);
  EXPECT_EQ(from_0(2), 3u);
  EXPECT_EQ(from_0(4), 4u);
  EXPECT_EQ(topology.l1d_bytes, 48u << 10);
  EXPECT_EQ(topology.l2_bytes, 2u << 20);
  EXPECT_EQ(topology.l3_bytes, 32u << 20);
  EXPECT_EQ(topology.line_bytes, 64u);
  EXPECT_EQ(topology.cpu_quota, 0.0);
}

TEST(Topology, CoreIdsThatRepeatInEachPackageMakeNoSiblings) {
  CpuInfo a;
  CpuInfo b;
  a.cpu = 0;
  b.cpu = 4;
  b.package = 1;
  b.l3_group = 4;
  EXPECT_EQ(distance(a, b), 4u);
}

TEST(Topology, OnlyAllowedCpusAreListed) {
  FakeMachine machine;
  two_packages(machine);
  machine.allow("2,9-10");
  const Topology topology = machine.read();
  ASSERT_EQ(topology.allowed_count, 3u);
  EXPECT_EQ(topology.allowed[0].cpu, 2u);
  EXPECT_EQ(topology.allowed[1].cpu, 9u);
  EXPECT_EQ(topology.allowed[2].cpu, 10u);
  EXPECT_EQ(topology.allowed[1].core, 1u) << "the lowest of its core, allowed or not";
  EXPECT_EQ(topology.online_count, 16u);
}

TEST(Topology, NodesAreRead) {
  FakeMachine machine;
  two_packages(machine);
  machine.file("sys/devices/system/node/online", "0,3\n");
  machine.file("sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
  machine.file("sys/devices/system/node/node3/cpulist", "4-7,12-15\n");
  const Topology topology = machine.read();
  EXPECT_EQ(topology.allowed[1].node, 0u);
  EXPECT_EQ(topology.allowed[5].node, 3u);
  EXPECT_EQ(topology.allowed[13].node, 3u);
}

TEST(Topology, WithoutDetailsEachCpuIsACoreAndAllShareOneCache) {
  FakeMachine machine;
  machine.online("0-3");
  const Topology topology = machine.read();
  ASSERT_EQ(topology.allowed_count, 4u);
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT_EQ(topology.allowed[i].core, i);
    EXPECT_EQ(topology.allowed[i].package, 0u);
    EXPECT_EQ(topology.allowed[i].l3_group, 0u);
  }
  EXPECT_EQ(distance(topology.allowed[0], topology.allowed[3]), 2u);
  EXPECT_EQ(topology.l1d_bytes + topology.l2_bytes + topology.l3_bytes, 0u);
  EXPECT_EQ(topology.line_bytes, 64u);
}

TEST(Topology, GarbageCountsAsMissing) {
  FakeMachine machine;
  machine.online("0-1");
  for (unsigned cpu = 0; cpu < 2; ++cpu) {
    machine.cpu(cpu, "zz,ff", "0x3", 0);
    const std::string at = cpu_directory + "cpu" + std::to_string(cpu);
    machine.file(at + "/topology/physical_package_id", "-1\n");
    machine.file(at + "/cache/index0/size", "48Q\n");
    machine.file(at + "/cache/index0/coherency_line_size", "65\n");
    machine.file(at + "/cache/index2/coherency_line_size", "0\n");
    machine.file(at + "/cache/index3/coherency_line_size", "99999999999999999999999\n");
    machine.file(at + "/cache/index3/size", std::string(5000, '9'));
  }
  const Topology topology = machine.read();
  ASSERT_EQ(topology.allowed_count, 2u);
  EXPECT_EQ(topology.allowed[1].core, 1u);
  EXPECT_EQ(topology.allowed[1].package, 0u);
  EXPECT_EQ(distance(topology.allowed[0], topology.allowed[1]), 2u);
  EXPECT_EQ(topology.l1d_bytes, 0u);
  EXPECT_EQ(topology.l2_bytes, 2u << 20);
  EXPECT_EQ(topology.l3_bytes, 0u);
  EXPECT_EQ(topology.line_bytes, 64u);
}

TEST(Topology, AListThatLeavesOutItsOwnCpuIsGarbage) {
  FakeMachine machine;
  machine.online("0-1");
  machine.cpu(0, "0", "0-1", 0);
  machine.cpu(1, "0", "0-1", 0);  // says that CPU 1 is not on its own core
  EXPECT_EQ(machine.read().allowed[1].core, 1u);
}

TEST(Topology, WithoutAThirdLevelTheLastOneCounts) {
  FakeMachine machine;
  machine.online("0-3");
  for (unsigned cpu = 0; cpu < 4; ++cpu) {
    machine.cache(cpu, 0, 1, "Data", "32K", std::to_string(cpu));
    machine.cache(cpu, 1, 2, "Unified", "4096K", cpu < 2 ? "0-1" : "2-3");
  }
  const Topology topology = machine.read();
  EXPECT_EQ(distance(topology.allowed[0], topology.allowed[1]), 2u);
  EXPECT_EQ(distance(topology.allowed[0], topology.allowed[2]), 3u);
  EXPECT_EQ(topology.l3_bytes, 0u);
}

TEST(Topology, CpusPastTheLimitAreLeftOut) {
  FakeMachine machine;
  machine.online("0-4095");
  Topology topology = machine.read();
  EXPECT_EQ(topology.allowed_count, max_cpus);
  EXPECT_EQ(topology.allowed[max_cpus - 1].cpu, max_cpus - 1);
  machine.allow("1023,1024-18446744073709551615");
  topology = machine.read();
  EXPECT_EQ(topology.allowed_count, 1u);
  EXPECT_EQ(topology.allowed[0].cpu, 1023u);
  machine.allow("1024-2000");
  machine.online("zz");
  EXPECT_FALSE(read_topology(machine.dir().path().c_str()));
}

TEST(Topology, AnEmptyDirectoryIsAnErrorWithARemedy) {
  test::TempDir empty;
  const auto topology = read_topology(empty.path().c_str());
  ASSERT_FALSE(topology);
  EXPECT_EQ(topology.error().code, Code::not_supported);
  EXPECT_NE(std::string(topology.error().sentence).find("affinity"), std::string::npos);
}

TEST(Topology, TheRealMachineObeysTheThreadsMask) {
  const auto whole = read_topology("");
  ASSERT_TRUE(whole);
  ASSERT_GE(whole->allowed_count, 1u);
  EXPECT_GE(whole->online_count, 1u);
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  EXPECT_EQ(whole->allowed_count, static_cast<unsigned>(CPU_COUNT(&mask)));
  for (unsigned i = 0; i < whole->allowed_count; ++i) {
    EXPECT_TRUE(CPU_ISSET(whole->allowed[i].cpu, &mask));
  }
  const unsigned last = whole->allowed[whole->allowed_count - 1].cpu;
  unsigned narrowed_count = 0;
  unsigned narrowed_cpu = max_cpus;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const auto narrowed = read_topology("");
    ASSERT_TRUE(narrowed);
    narrowed_count = narrowed->allowed_count;
    narrowed_cpu = narrowed->allowed[0].cpu;
  }).join();
  EXPECT_EQ(narrowed_count, 1u);
  EXPECT_EQ(narrowed_cpu, last);
}

TEST(MoverCandidates, NearestFirstAndEachCoreOnce) {
  FakeMachine machine;
  two_packages(machine);
  const Topology topology = machine.read();
  EXPECT_EQ(candidates(topology, 0),
            (std::vector<unsigned>{1, 9, 2, 3, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15}));
  EXPECT_EQ(candidates(topology, 13).front(), 4u);
  EXPECT_EQ(candidates(topology, 0, 2), (std::vector<unsigned>{1, 9}));
  EXPECT_EQ(candidates(topology, 0, 0), (std::vector<unsigned>{}));
}

TEST(MoverCandidates, OneCpuOfEveryCoreBeforeTheSecondOfAny) {
  FakeMachine machine;
  machine.online("0-5");
  for (unsigned cpu = 0; cpu < 6; ++cpu) {
    const unsigned first = cpu / 2 * 2;
    machine.cpu(cpu, std::to_string(first) + "-" + std::to_string(first + 1), "0-5", 0);
  }
  EXPECT_EQ(candidates(machine.read(), 0), (std::vector<unsigned>{2, 4, 3, 5}));
  EXPECT_EQ(candidates(machine.read(), 3), (std::vector<unsigned>{0, 4, 1, 5}));
}

TEST(MoverCandidates, SiblingsOnlyWhereNothingElseIs) {
  FakeMachine machine;
  two_packages(machine);
  machine.allow("0,8");
  EXPECT_EQ(candidates(machine.read(), 0), (std::vector<unsigned>{8}));
  machine.allow("0,4,8");
  EXPECT_EQ(candidates(machine.read(), 0), (std::vector<unsigned>{4}));
  machine.allow("0");
  EXPECT_EQ(candidates(machine.read(), 0), (std::vector<unsigned>{}));
}

TEST(MoverCandidates, AnUnknownCallerTakesNoCpu) {
  FakeMachine machine;
  two_packages(machine);
  machine.allow("0-1,8");
  EXPECT_EQ(candidates(machine.read(), 99), (std::vector<unsigned>{0, 1, 8}));
  EXPECT_EQ(candidates(machine.read(), static_cast<unsigned>(-1)).size(), 3u);
}

TEST(MoverCandidates, TheLargestMachineFits) {
  FakeMachine machine;
  machine.online("0-1023");
  const std::vector<unsigned> order = candidates(machine.read(), 5);
  ASSERT_EQ(order.size(), 1023u);
  EXPECT_EQ(std::count(order.begin(), order.end(), 5u), 0);
}

// ---- CPU quota ----

double quota_of(const FakeMachine& machine) {
  return read_cpu_quota(FileTree(machine.dir().path().c_str()));
}

TEST(CpuQuota, Version2TakesTheLeastOfTheAncestors) {
  FakeMachine machine;
  machine.file("proc/self/cgroup", "0::/a/b\n");
  machine.file("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(quota_of(machine), 0.0);
  machine.file("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota_of(machine), 1.5);
  machine.file("sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota_of(machine), 1.5);
  machine.file("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota_of(machine), 0.5);
}

TEST(CpuQuota, Version1) {
  FakeMachine machine;
  machine.file("proc/self/cgroup", "5:cpuset:/x\n4:cpu,cpuacct:/docker/77\n0::/ignored\n");
  machine.file("sys/fs/cgroup/cpuset/x/cpu.cfs_quota_us", "1\n");
  machine.file("sys/fs/cgroup/cpuset/x/cpu.cfs_period_us", "1\n");
  machine.file("sys/fs/cgroup/cpu,cpuacct/docker/77/cpu.cfs_quota_us", "-1\n");
  machine.file("sys/fs/cgroup/cpu,cpuacct/docker/77/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota_of(machine), 0.0);
  machine.file("sys/fs/cgroup/cpu,cpuacct/docker/77/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(quota_of(machine), 2.5);
}

TEST(CpuQuota, AContainerSeesItsOwnGroupAtTheMountsRoot) {
  FakeMachine machine;
  machine.file("proc/self/cgroup", "4:cpuacct,cpu:/docker/host/path\n");
  machine.file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  machine.file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota_of(machine), 2.0);
}

TEST(CpuQuota, HybridAndGarbage) {
  FakeMachine machine;
  machine.file("proc/self/cgroup", "no colons\n1:\n0::/u\n7:cpux:/y\n");
  EXPECT_EQ(quota_of(machine), 0.0);
  machine.file("sys/fs/cgroup/unified/u/cpu.max", "junk\n");
  EXPECT_EQ(quota_of(machine), 0.0);
  machine.file("sys/fs/cgroup/unified/u/cpu.max", "100000 0\n");
  EXPECT_EQ(quota_of(machine), 0.0);
  machine.file("sys/fs/cgroup/unified/u/cpu.max", "100000 50000\n");
  EXPECT_EQ(quota_of(machine), 2.0);
  machine.online("0");
  EXPECT_EQ(machine.read().cpu_quota, 2.0);
}

// ---- lists ----

TEST(CpuList, TakesWhatTheKernelWrites) {
  CpuSet set;
  ASSERT_TRUE(parse_cpu_list("0", set));
  EXPECT_EQ(set.count(), 1u);
  ASSERT_TRUE(parse_cpu_list("0-3,8,10-11", set));
  EXPECT_EQ(set.count(), 7u);
  EXPECT_EQ(set.first(), 0u);
  EXPECT_TRUE(set.has(11));
  EXPECT_FALSE(set.has(9));
  EXPECT_FALSE(set.has(5000));
}

TEST(CpuList, RefusesAllElse) {
  CpuSet set;
  for (const char* bad : {"", "-", "1-", "-1", "3-1", "0,3-1", "1,", ",1", "1,,2", "a", "1 2",
                          "0x1", "1-2-3", "0\n", "1024", "99999999999999999999"}) {
    EXPECT_FALSE(parse_cpu_list(bad, set)) << bad;
    EXPECT_EQ(set.count(), 0u) << bad;
    EXPECT_EQ(set.first(), max_cpus);
  }
}

}  // namespace
}  // namespace haul
