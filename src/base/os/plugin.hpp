// Libraries that are opened when they are first needed, and that lie beside the one that needs
// them.
#pragma once

namespace haul::os {

// Opens `file` in the directory of the library or program that holds `code`, else where the loader
// looks. nullptr: dlerror() says why. Takes the loader's lock, and opens files.
void* open_plugin(const char* file, const void* code) noexcept;

}  // namespace haul::os
