// Which path a message of each size takes between two processes, and why.
#pragma once

#include <string>
#include <vector>

#include "fabric/transport/monitor.hpp"

namespace haul::cli {

// What two processes can do for each other.
struct PairAbilities {
  bool ring = false, mapped = false, cma = false, offnode = false;
  std::string why;  // what is missing and why; "" if nothing is

  static PairAbilities of(const fabric::MonitorReply::PeerPaths& peer);
  bool operator==(const PairAbilities&) const = default;
};

struct PathRow {
  std::string sizes, memory, path, why;
};
std::vector<PathRow> paths_with(const PairAbilities& abilities);

// "ring, mapped, cma".
std::string ability_names(const PairAbilities& abilities);

}  // namespace haul::cli
