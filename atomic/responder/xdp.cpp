#include "atomic/responder/xdp.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace haul::atomics {

namespace {

// Beside this library, else where the loader looks.
void* open_plugin() noexcept {
  Dl_info self;
  char path[4096];
  const auto* here = reinterpret_cast<const void*>(&open_xdp);
  if (dladdr(here, &self) != 0 && self.dli_fname != nullptr) {
    const char* slash = std::strrchr(self.dli_fname, '/');
    const int directory = slash == nullptr ? 0 : static_cast<int>(slash + 1 - self.dli_fname);
    const int length =
        snprintf(path, sizeof path, "%.*s%s", directory, self.dli_fname, xdp_plugin_name);
    if (directory > 0 && length > 0 && static_cast<std::size_t>(length) < sizeof path) {
      void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
      if (plugin != nullptr) return plugin;
    }
  }
  return dlopen(xdp_plugin_name, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

Xdp* open_xdp(const XdpOptions& options, Error* error) noexcept {
  // Never closed: libbpf is not made for that.
  static void* const plugin = open_plugin();
  if (plugin == nullptr) {
    *error = make_error(Code::not_supported, 0,
                        "%s cannot be loaded (%s); install libbpf1 and build haul with libbpf-dev "
                        "and clang",
                        xdp_plugin_name, dlerror());
    return nullptr;
  }
  const auto open = reinterpret_cast<OpenXdp>(dlsym(plugin, open_xdp_name));
  if (open == nullptr) {
    *error = make_error(Code::not_supported, 0,
                        "%s is not of this version of haul; install both libraries together",
                        xdp_plugin_name);
    return nullptr;
  }
  return open(options, error);
}

}  // namespace haul::atomics
