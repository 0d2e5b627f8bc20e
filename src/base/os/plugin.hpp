// Libraries that are opened when they are first needed, and that lie beside the one that needs
// them.
#pragma once

namespace haul::os {

// Opens `file` in the directory of the library or program that holds `code`, else in
// plugin_directory(), else where the loader looks. nullptr: dlerror() says why. Takes the loader's
// lock, and opens files.
void* open_plugin(const char* file, const void* code) noexcept;

// Where this build's plug-ins are installed (cmake/HaulPlugins.cmake); "" for beside the libraries.
const char* plugin_directory() noexcept;

}  // namespace haul::os
