// What haul would do and what it has: haul.Plan, engines(), state(), wake() and tune().
#pragma once

#include <haul/haul.h>
#include <nanobind/nanobind.h>

namespace haul_python {

struct PlanObject {
  haul_plan raw;
};

// haul_explain() of one request; raises haul.Error where it is refused.
PlanObject plan_of(const haul_request& request);

void define_plan(nanobind::module_& module);

}  // namespace haul_python
