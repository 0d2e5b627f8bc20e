// What has an unmodified program load libhaul-mem.so. `haul run --transparent` uses it, too.
#pragma once

#include <string>

#include "tools/program.hpp"

namespace haul::bench {

// The variables that have a program load the library, in front of what it preloads already, and
// leave its tables in `directory` ("": nowhere). Throws tools::CommandFailure where the library is
// missing.
tools::Environment transparent_environment(const std::string& directory);
// Why suites that need it cannot run here, in a sentence; "": they can.
std::string why_no_preload();

}  // namespace haul::bench
