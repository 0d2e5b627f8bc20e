// Looking at the machine.
#include "cli/kit/machine.hpp"

#include <fmt/format.h>
#include <haul/atomic.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/error.hpp"
#include "base/machine/cpu.hpp"
#include "base/machine/huge_pages.hpp"
#include "base/machine/pages.hpp"
#include "base/os/os.hpp"
#include "base/private.hpp"
#include "bench/copy/schemes/engines.hpp"
#include "bench/kit/stage.hpp"
#include "tools/failure.hpp"

namespace haul::cli {
namespace {

SystemAbility membarrier_ability() {
  bool ready = os::membarrier_register() && os::membarrier();
  return {"membarrier", ready,
          ready
              ? "the mover falls asleep and is woken without a fence in each submit"
              : "refused, so the mover naps a millisecond before it sleeps; allow the system call "
                "membarrier in the container's seccomp profile"};
}

// Tried on memory of its own, as a copy into new memory does it.
SystemAbility huge_page_ability() {
  constexpr const char* name = "huge pages";
  if (!os::huge_pages_on_request()) {
    return {name, false,
            "copies into new memory make small pages, as "
            "/sys/kernel/mm/transparent_hugepage/enabled does not say `madvise` (under `always` "
            "the kernel makes huge ones by itself); an administrator sets it"};
  }
  constexpr std::size_t bytes = 2 * os::huge_page_bytes;
  void* const room = os::map_anonymous(bytes);
  const auto first = (reinterpret_cast<std::uintptr_t>(room) + os::huge_page_bytes - 1) &
                     ~(os::huge_page_bytes - 1);
  const bool populates = room != nullptr && os::populate(first, os::page_bytes);
  const int collapsed = populates ? os::collapse_to_huge(first, os::huge_page_bytes) : -EINVAL;
  os::unmap(room, bytes);
  if (collapsed == 0)
    return {name, true, "copies of 1 MiB and more into new memory make them first"};
  return {name, false,
          fmt::format(
              "none could be made just now ({}), so new memory gets small pages{}; it takes "
              "Linux 6.1, free memory in one piece, and no PR_SET_THP_DISABLE",
              describe_errno(-collapsed), populates ? ", made before a copy" : " by page faults")};
}

SystemAbility peer_ability() {
  std::uint64_t from = 1, to = 0;
  iovec local{&to, sizeof to}, remote{&from, sizeof from};
  ssize_t read = os::read_process(getpid(), &local, 1, &remote, 1);
  if (read != static_cast<ssize_t>(sizeof to)) {
    return {"peer memory", false,
            fmt::format("process_vm_readv fails ({}), so nothing is copied to or from other "
                        "processes; allow it in the container's seccomp profile",
                        describe_errno(static_cast<int>(-read)))};
  }
  char text[16];
  bool known = os::read_file("/proc/sys/kernel/yama/ptrace_scope", text, sizeof text) > 0;
  int scope = known ? std::atoi(text) : 0;
  const char* statuses[] = {
      "processes of the same user can be copied to and from",
      ("only descendants can be copied to and from; others must call prctl(PR_SET_PTRACER), or an "
       "administrator sets kernel.yama.ptrace_scope=0"),
      "only with CAP_SYS_PTRACE (kernel.yama.ptrace_scope is 2); an administrator sets it to 0",
      "forbidden until the next boot (kernel.yama.ptrace_scope is 3)"};
  bool ready = scope == 0 || geteuid() == 0;
  return {"peer memory", ready && scope < 3,
          geteuid() == 0 && scope < 3 ? "all processes can be copied to and from (root)"
                                      : statuses[std::clamp(scope, 0, 3)]};
}

SystemAbility atomic_ability() {
  const bool ready = haul_atomic_probe_xdp() == 0;
  return {"xdp", ready,
          ready ? "remote atomics can be served in the receive path, by no process"
                : fmt::format("remote atomics are served by a thread: {}", haul_last_error())};
}

}  // namespace

Machine examine_machine() {
  Machine machine;
  machine.topology = std::make_unique<Topology>();
  auto read = read_topology("");
  if (!read) throw tools::CommandFailure(read.error().sentence);
  *machine.topology = *read;
  (void)bench::settle_mover();  // if there is no mover, the state says why
  machine.state.size = sizeof machine.state;
  tools::require(haul_query(&machine.state), "haul_query()");
  // Those on devices are opened, or it could not be said whether they are there.
  haul_private_open_engines();
  machine.engines = bench::settled_engines();
  return machine;
}

std::string cpu_brand() {
  std::string brand = cpu_features().brand;
  brand.erase(brand.find_last_not_of(' ') + 1);
  return brand.empty() ? fmt::format("{} family {}", cpu_features().vendor, cpu_features().family)
                       : brand;
}

std::vector<std::string> cpu_abilities() {
  const CpuFeatures& cpu = cpu_features();
  const std::pair<const char*, bool> all[] = {{"avx512", cpu.avx512},
                                              {"avx2", cpu.avx2},
                                              {"erms", cpu.erms},
                                              {"fsrm", cpu.fsrm},
                                              {"clflushopt", cpu.clflushopt},
                                              {"clwb", cpu.clwb},
                                              {"movdir64b", cpu.movdir64b}};
  std::vector<std::string> present;
  for (const auto& [name, has] : all) {
    if (has) present.emplace_back(name);
  }
  return present;
}

std::vector<CacheGroup> cache_groups(const Topology& topology) {
  // By group, then by core within it.
  std::map<unsigned, std::map<std::pair<unsigned, unsigned>, std::string>> groups;
  std::vector<CacheGroup> result;
  for (unsigned i = 0; i < topology.allowed_count; ++i) {
    const CpuInfo& cpu = topology.allowed[i];
    if (!groups.contains(cpu.l3_group)) {
      result.push_back({cpu.l3_group, cpu.package, cpu.node, ""});
    }
    std::string& siblings = groups[cpu.l3_group][{cpu.package, cpu.core}];
    siblings += fmt::format("{}{}", siblings.empty() ? "" : "+", cpu.cpu);
  }
  for (CacheGroup& group : result) {
    for (const auto& [core, siblings] : groups[group.first_cpu]) {
      group.cpus += (group.cpus.empty() ? "" : " ") + siblings;
    }
  }
  return result;
}

std::string mover_state_name(const haul_state& state) {
  const char* names[] = {"none yet", "awake", "asleep", "its core is leased by another process",
                         "impossible here"};
  return state.mover_state < std::size(names) ? names[state.mover_state] : "unknown";
}

std::vector<SystemAbility> system_abilities() {
  return {membarrier_ability(), peer_ability(), huge_page_ability(), atomic_ability()};
}

}  // namespace haul::cli
