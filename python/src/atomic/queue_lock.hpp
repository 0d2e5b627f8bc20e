// haul.Lock: a member of a queue lock between processes on any hosts.
#pragma once

#include <nanobind/nanobind.h>

namespace haul_python {

void define_queue_lock(nanobind::module_& module);

}  // namespace haul_python
