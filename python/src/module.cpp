// The module haul._haul: the names that Python sees, and whether the loaded library is one that it
// can use.
#include <haul/haul.h>
#include <nanobind/nanobind.h>

#include <cstdio>
#include <string>

#include "python/src/copy.hpp"
#include "python/src/errors/failure.hpp"
#include "python/src/plan.hpp"
#include "python/src/sides/extent.hpp"
#include "python/src/sides/memory.hpp"
#include "python/src/tickets/abandoned.hpp"
#include "python/src/tickets/completions.hpp"
#include "python/src/tickets/ticket.hpp"

namespace haul_python {
namespace {

// Before 1.0 a minor version may change structures and numbers.
void check_library() {
  int major = -1;
  int minor = -1;
  if (std::sscanf(haul_version(), "%d.%d", &major, &minor) == 2 && major == HAUL_VERSION_MAJOR &&
      minor == HAUL_VERSION_MINOR) {
    return;
  }
  raise(PyExc_ImportError,
        std::string("this process has loaded libhaul ") + haul_version() +
            ", and the module haul was "
            "built for " +
            std::to_string(HAUL_VERSION_MAJOR) + "." + std::to_string(HAUL_VERSION_MINOR) +
            "; install versions that match, and look at LD_PRELOAD and LD_LIBRARY_PATH");
}

}  // namespace
}  // namespace haul_python

NB_MODULE(_haul, module) {
  using namespace haul_python;
  check_library();
  // (What a program holds when it ends is no leak of this module.)
  nanobind::set_leak_warnings(false);
  use_errors();
  define_ticket(module);
  define_spaces(module);
  define_plan(module);
  define_copy(module);
  define_memory(module);
  define_completions(module);
  define_abandoned(module);
  module.def("version", &haul_version,
             "The version of the libhaul that is loaded, such as \"0.1.0\".");
}
