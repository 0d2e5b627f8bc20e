#include "base/os/plugin.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace haul::os {

void* open_plugin(const char* file, const void* code) noexcept {
  Dl_info self;
  char path[4096];
  if (dladdr(code, &self) != 0 && self.dli_fname != nullptr) {
    const char* const slash = std::strrchr(self.dli_fname, '/');
    const int directory = slash == nullptr ? 0 : static_cast<int>(slash + 1 - self.dli_fname);
    const int length = std::snprintf(path, sizeof path, "%.*s%s", directory, self.dli_fname, file);
    if (directory > 0 && length > 0 && static_cast<std::size_t>(length) < sizeof path) {
      void* const plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
      if (plugin != nullptr) return plugin;
    }
  }
  return dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace haul::os
