#include "atomic/plugin/plugin.hpp"

#include <dlfcn.h>

#include "base/os/plugin.hpp"

namespace haul::atomics {

void* open_plugin(const Plugin& plugin, Error* error) noexcept {
  void* const loaded = os::open_plugin(plugin.file, reinterpret_cast<const void*>(&open_plugin));
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
