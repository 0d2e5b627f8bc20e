// haul.copy(), haul.fill() and haul.explain().
#pragma once

#include <nanobind/nanobind.h>

namespace haul_python {

void define_copy(nanobind::module_& module);

}  // namespace haul_python
