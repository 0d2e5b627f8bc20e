// haul.Memory: pages of haul's arena, which the node's service and messages reach at the speed of
// memory.
#pragma once

#include <nanobind/nanobind.h>

namespace haul_python {

void define_memory(nanobind::module_& module);

}  // namespace haul_python
