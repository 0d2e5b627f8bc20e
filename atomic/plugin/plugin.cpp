#include "atomic/plugin/plugin.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace haul::atomics {

namespace {

// Beside this library, else where the loader looks.
void* load(const char* file) noexcept {
  Dl_info self;
  char path[4096];
  const auto* here = reinterpret_cast<const void*>(&open_plugin);
  if (dladdr(here, &self) != 0 && self.dli_fname != nullptr) {
    const char* slash = std::strrchr(self.dli_fname, '/');
    const int directory = slash == nullptr ? 0 : static_cast<int>(slash + 1 - self.dli_fname);
    const int length = snprintf(path, sizeof path, "%.*s%s", directory, self.dli_fname, file);
    if (directory > 0 && length > 0 && static_cast<std::size_t>(length) < sizeof path) {
      void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
      if (plugin != nullptr) return plugin;
    }
  }
  return dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

void* open_plugin(const Plugin& plugin, Error* error) noexcept {
  void* const loaded = load(plugin.file);
  if (loaded == nullptr) {
    *error = make_error(Code::not_supported, 0, "%s cannot be loaded (%s); %s", plugin.file,
                        dlerror(), plugin.remedy);
    return nullptr;
  }
  void* const function = dlsym(loaded, plugin.function);
  if (function == nullptr) {
    *error = make_error(Code::not_supported, 0,
                        "%s is not of this version of haul; install both libraries together",
                        plugin.file);
  }
  return function;
}

}  // namespace haul::atomics
