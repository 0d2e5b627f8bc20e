// MPI_Alloc_mem() from haul's arena: ranks of one node can map each other's buffers, so messages
// are copied once and without the kernel (path `mapped`), even in containers that refuse
// process_vm_readv. `haul run --mpi --alloc-mem` preloads this library; it needs no MPI's header,
// so one library serves all MPIs.
#include <haul/haul.h>

#include <cstdint>

#include "base/private.hpp"
#include "preload/mpi_next.hpp"

namespace {

using namespace haul::preload;
using Allocate = int(Aint bytes, Info info, void* result);
using Free = int(void* memory);

constexpr int wrong_buffer = 1;  // MPI_ERR_BUFFER: the same in all

int free_memory(void* memory, const char* name) noexcept {
  std::uint64_t offset = 0;
  if (memory != nullptr && haul_private_in_arena(memory, 1, &offset))
    return haul_free(memory) == HAUL_OK ? success : wrong_buffer;
  auto* theirs = reinterpret_cast<Free*>(next(name));
  return theirs != nullptr ? theirs(memory) : wrong_buffer;
}

}  // namespace

// Follows the MPI standard, except that `info` is ignored for the arena's memory, which is aligned
// to pages. If the arena has no memory, the MPI's own function gives it.
extern "C" [[gnu::visibility("default")]] int MPI_Alloc_mem(Aint bytes, Info info, void* result) {
  if (bytes >= least_mapped_bytes && result != nullptr) {
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
// Fortran's bindings call this name to free what C may have allocated.
extern "C" [[gnu::visibility("default")]] int PMPI_Free_mem(void* memory) {
  return free_memory(memory, "PMPI_Free_mem");
}
