// What the interposed functions of MPI have in common.
// By the MPI standard's C binding MPI_Aint is as wide as a pointer. Handles (MPI_Info, MPI_Comm,
// MPI_Win) are ints in MPICH and its relatives and pointers in Open MPI; as arguments they pass
// through here in their registers either way.
#pragma once

#include <dlfcn.h>

#include <cstdint>

#include "base/thread/uncancelled.hpp"

namespace haul::preload {

using Aint = std::intptr_t;
using Info = void*;
using Comm = void*;

constexpr int success = 0;  // MPI_SUCCESS
// Shorter messages are never copied directly, and the arena gives out whole pages.
constexpr Aint least_mapped_bytes = 16 * 1024;

// The MPI's own function, or that of a tool in between; null if there is none.
inline void* next(const char* name) noexcept {
  const Uncancelled guard;  // the loader may read files
  if (void* found = dlsym(RTLD_NEXT, name)) return found;
  // An MPI that a module loaded, for example one of Python's, is in no scope that RTLD_NEXT
  // searches.
  constexpr const char* libraries[] = {"libmpi.so.12", "libmpi.so.40", "libmpi.so"};
  for (const char* library : libraries) {
    void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* found = dlsym(handle, name);
    dlclose(handle);
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace haul::preload
