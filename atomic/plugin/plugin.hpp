// Plug-ins of this library: they alone use foreign libraries, and are opened when they are first
// needed.
#pragma once

#include "base/error.hpp"

namespace haul::atomics {

struct Plugin {
  const char* file;
  const char* function;  // its one function
  const char* remedy;    // what to install, where it cannot be loaded
};

// Opens a plug-in and returns its function; nullptr and *error if that fails. A plug-in is never
// closed, because foreign libraries are not made for that.
void* open_plugin(const Plugin& plugin, Error* error) noexcept;

}  // namespace haul::atomics
