// Where haul's libraries lie.
#pragma once

#include <string>

namespace haul::bench {

// The path of a library that other programs load (libhaul-fi.so, libhaul-mem.so): beside the
// libhaul.so.0 that this program uses, or where this build installs plug-ins. The first of the two
// if there is none.
std::string plugin_file(const std::string& name);

}  // namespace haul::bench
