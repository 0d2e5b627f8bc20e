// What this machine has and allows, gathered once for `info` and `demo`.
#pragma once

#include <haul/haul.h>

#include <memory>
#include <string>
#include <vector>

#include "base/machine/topology.hpp"

namespace haul::cli {

struct SystemAbility {
  const char* name;
  bool ready;
  std::string status;  // what the ability is good for; where it is missing, why, and the remedy
};

struct Machine {
  std::unique_ptr<Topology> topology;
  std::vector<haul_engine_info> engines;
  haul_state state{};
};

// Starts the mover first, so that its state is what a program would see. Throws
// tools::CommandFailure.
Machine examine_machine();

std::string cpu_brand();
std::vector<std::string> cpu_abilities();  // "avx512", "clflushopt", ...

// The CPUs that share one cache, with SMT siblings joined: "0+4 1+5".
struct CacheGroup {
  unsigned first_cpu, package, node;
  std::string cpus;
};
std::vector<CacheGroup> cache_groups(const Topology& topology);

// "awake", "asleep", ...
std::string mover_state_name(const haul_state& state);

std::vector<SystemAbility> system_abilities();

}  // namespace haul::cli
