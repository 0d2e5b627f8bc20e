// MPI_Alloc_mem() from haul's arena, so that ranks of one node map each other's buffers and copy
// messages once, without the kernel (path `mapped`): also in containers that refuse
// process_vm_readv. Preloaded by `haul run --mpi --alloc-mem`; no MPI's header is needed, so one
// library serves all of them.
#include <dlfcn.h>
#include <haul/haul.h>

#include <cstdint>

#include "base/private.hpp"

namespace {

// By the MPI standard's C binding: MPI_Aint is as wide as a pointer; MPI_Info is an int (MPICH) or
// a pointer (Open MPI), and passes through here in its register.
using Info = void*;
using Allocate = int(std::intptr_t bytes, Info info, void* result);
using Free = int(void* memory);

constexpr int success = 0, wrong_buffer = 1;  // MPI_SUCCESS, MPI_ERR_BUFFER: the same in all
// Shorter messages are never copied directly, and the arena gives whole pages.
constexpr std::intptr_t least_bytes = 16 * 1024;

// The MPI's own function, or that of a tool between: nullptr if there is none.
void* next(const char* name) noexcept {
  if (void* found = dlsym(RTLD_NEXT, name)) return found;
  // An MPI that was loaded by a module of Python's, say, is in no scope that is searched.
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

int free_memory(void* memory, const char* name) noexcept {
  std::uint64_t offset = 0;
  if (memory != nullptr && haul_private_in_arena(memory, 1, &offset))
    return haul_free(memory) == HAUL_OK ? success : wrong_buffer;
  auto* theirs = reinterpret_cast<Free*>(next(name));
  return theirs != nullptr ? theirs(memory) : wrong_buffer;
}

}  // namespace

// As the MPI standard says, but for `info`, which is for the MPI's own memory: the arena's is
// aligned to pages. What the arena cannot give the MPI gives.
extern "C" [[gnu::visibility("default")]] int MPI_Alloc_mem(std::intptr_t bytes, Info info,
                                                            void* result) {
  if (bytes >= least_bytes && result != nullptr) {
    if (void* memory = haul_alloc(static_cast<std::size_t>(bytes))) {
      *static_cast<void**>(result) = memory;
      return success;
    }
  }
  auto* theirs = reinterpret_cast<Allocate*>(next("MPI_Alloc_mem"));
  return theirs != nullptr ? theirs(bytes, info, result) : wrong_buffer;
}

extern "C" [[gnu::visibility("default")]] int MPI_Free_mem(void* memory) {
  return free_memory(memory, "MPI_Free_mem");
}
// Fortran's bindings free by this name what C may have allocated.
extern "C" [[gnu::visibility("default")]] int PMPI_Free_mem(void* memory) {
  return free_memory(memory, "PMPI_Free_mem");
}
