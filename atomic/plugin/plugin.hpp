// Plug-ins of this library: they know the foreign libraries, and are opened when first asked for.
#pragma once

#include "base/error.hpp"

namespace haul::atomics {

struct Plugin {
  const char* file;
  const char* function;  // its one function
  const char* remedy;    // what to install, where it cannot be loaded
};

// That function; the plug-in is never closed, as foreign libraries are not made for that. nullptr
// and *error.
void* open_plugin(const Plugin& plugin, Error* error) noexcept;

}  // namespace haul::atomics
