// Where haul's libraries lie.
#pragma once

#include <string>

namespace haul::bench {

// The folder of the libhaul.so.0 that this program uses. Those that other programs load
// (libhaul-fi.so, libhaul-mem.so) lie beside it.
std::string library_directory();

}  // namespace haul::bench
