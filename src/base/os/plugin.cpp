#include "base/os/plugin.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace haul::os {
namespace {

// The first `length` characters of `directory` name it.
void* open_in(const char* directory, std::size_t length, const char* file) noexcept {
  char path[4096];
  const int written =
      std::snprintf(path, sizeof path, "%.*s/%s", static_cast<int>(length), directory, file);
  if (written <= 0 || static_cast<std::size_t>(written) >= sizeof path) return nullptr;
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

const char* plugin_directory() noexcept {
#ifdef HAUL_PLUGIN_DIR
  return HAUL_PLUGIN_DIR;
#else
  return "";
#endif
}

void* open_plugin(const char* file, const void* code) noexcept {
  Dl_info self;
  void* plugin = nullptr;
  if (dladdr(code, &self) != 0 && self.dli_fname != nullptr) {
    const char* const slash = std::strrchr(self.dli_fname, '/');
    if (slash != nullptr)
      plugin = open_in(self.dli_fname, static_cast<std::size_t>(slash - self.dli_fname), file);
  }
  const char* const installed = plugin_directory();
  if (plugin == nullptr && *installed != '\0')
    plugin = open_in(installed, std::strlen(installed), file);
  return plugin != nullptr ? plugin : dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace haul::os
