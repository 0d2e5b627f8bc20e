// What this machine is and allows, gathered once for `info` and `demo`.
#pragma once

#include <haul/haul.h>

#include <memory>
#include <string>
#include <vector>

#include "base/topology.hpp"

namespace haul::cli {

struct SystemAbility {
  const char* name;
  bool ready;
  std::string status;  // what it is for; where missing: why, and the remedy
};

struct Machine {
  std::unique_ptr<Topology> topology;
  std::vector<haul_engine_info> engines;
  haul_state state{};
};

// Starts the mover, so that its state is what a program sees. Throws tools::CommandFailure.
Machine examine_machine();

std::string cpu_brand();
std::vector<std::string> cpu_abilities();  // "avx512", "clflushopt", ...

// One line for each shared cache: the CPUs that share it, SMT siblings joined: "0+4 1+5".
struct CacheGroup {
  unsigned first_cpu, package, node;
  std::string cpus;
};
std::vector<CacheGroup> cache_groups(const Topology& topology);

// "awake", "asleep", ...
std::string mover_state_name(const haul_state& state);

std::vector<SystemAbility> system_abilities();

}  // namespace haul::cli
