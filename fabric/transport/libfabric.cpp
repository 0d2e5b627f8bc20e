// How the libfabric that loaded this provider is found.
#include "fabric/transport/libfabric.hpp"

#include <dlfcn.h>

#include "base/log.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::fabric {

namespace {

template <class Function>
bool look_up(void* library, const char* name, Function& function) noexcept {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

struct Lookup {
  Libfabric functions;
  bool complete = false;

  Lookup() noexcept {
    const Uncancelled guard;
    // By its usual name; else it may have been linked into the program or one of its libraries.
    void* library = dlopen("libfabric.so.1", RTLD_NOLOAD | RTLD_LAZY);
    complete = look_up_all(library != nullptr ? library : RTLD_DEFAULT);
    if (!complete) {
      log(LogLevel::error,
          "the provider haul does not find the functions of the libfabric that loaded it; link the "
          "program to a shared libfabric.so.1, version 1.17 or later");
    }
  }

  bool look_up_all(void* library) noexcept {
    return look_up(library, "fi_getinfo", functions.getinfo) &&
           look_up(library, "fi_fabric", functions.fabric) &&
           look_up(library, "fi_dupinfo", functions.dupinfo) &&
           look_up(library, "fi_freeinfo", functions.freeinfo) &&
           look_up(library, "fi_version", functions.version) &&
           look_up(library, "fi_strerror", functions.strerror);
  }
};

}  // namespace

const Libfabric* libfabric() noexcept {
  static const Lookup lookup;
  return lookup.complete ? &lookup.functions : nullptr;
}

}  // namespace haul::fabric
