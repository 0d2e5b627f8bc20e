// What running programs send by haul, for Prometheus: `haul top --metrics`.
#pragma once

#include "cli/kit/exposition.hpp"

namespace haul::cli {

// Looks at all endpoints of this user and adds families haul_fabric_*, with the labels pid and name
// of each process that has one; endpoints of one process are added up. Takes a second if some do
// not answer.
void add_fabric_metrics(Exposition* page);

}  // namespace haul::cli
