// MPI_Win_allocate() from haul's arena. The window is created on memory that the ranks of a node
// map, and looks like an allocated one; what is put into it or read from it is copied once. For
// MPICH and its relatives only: ranks of Open MPI access its allocated windows directly, without a
// message.
#include <haul/haul.h>
#include <pthread.h>

#include <cstdlib>

#include "base/private.hpp"
#include "preload/mpi_next.hpp"

namespace {

using namespace haul::preload;

using Window = int;                // of MPICH
using AnyWindow = std::uintptr_t;  // an argument to be passed on: a handle of any MPI
using Allocate = int(Aint bytes, int unit, Info info, Comm comm, void* base, Window* window);
using Create = int(void* base, Aint bytes, int unit, Info info, Comm comm, Window* window);
using CallErrorHandler = int(Comm comm, int code);
using Free = int(Window* window);
using GetAttribute = int(AnyWindow window, int key, void* value, int* found);

constexpr int no_mpi = 1;               // not MPI_SUCCESS
constexpr int no_memory = 34;           // MPI_ERR_NO_MEM
constexpr int flavor_key = 0x66000007;  // MPI_WIN_CREATE_FLAVOR, and no key of Open MPI's
constinit int allocated_flavor = 2;     // MPI_WIN_FLAVOR_ALLOCATE; the program gets its address

bool is_mpich() noexcept {
  return next("ompi_mpi_comm_world") == nullptr;
}

// The windows and their memory. There are few, so a list will do. Only libc is used, as in
// everything that gets loaded into programs.
struct OwnWindow {
  Window window;
  void* memory;
};
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
OwnWindow* entries = nullptr;
std::size_t entry_count = 0, entry_room = 0;

class ListLock {
 public:
  ListLock() noexcept { pthread_mutex_lock(&mutex); }
  ~ListLock() { pthread_mutex_unlock(&mutex); }
  ListLock(const ListLock&) = delete;
  ListLock& operator=(const ListLock&) = delete;
};

// The lock must be held. Null if it is no window of ours.
OwnWindow* find(Window window) noexcept {
  for (std::size_t i = 0; i < entry_count; ++i)
    if (entries[i].window == window) return &entries[i];
  return nullptr;
}

// If there is no memory for the entry, the window's memory is never freed; nothing else goes wrong.
void remember(Window window, void* memory) noexcept {
  const ListLock lock;
  if (OwnWindow* stale = find(window)) {  // freed where this library could not see it
    stale->memory = memory;
    return;
  }
  if (entry_count == entry_room) {
    const std::size_t room = entry_room * 2 + 16;
    void* grown = std::realloc(entries, room * sizeof *entries);
    if (grown == nullptr) return;
    entries = static_cast<OwnWindow*>(grown);
    entry_room = room;
  }
  entries[entry_count++] = {window, memory};
}

void* forget(Window window) noexcept {
  const ListLock lock;
  OwnWindow* entry = find(window);
  if (entry == nullptr) return nullptr;
  void* memory = entry->memory;
  *entry = entries[--entry_count];
  return memory;
}

// Null if there is none.
void* allocate(Aint bytes) noexcept {
  if (bytes < 0) return nullptr;
  const auto size = static_cast<std::size_t>(bytes);
  void* memory = bytes >= least_mapped_bytes ? haul_alloc(size) : nullptr;
  constexpr std::size_t line_bytes = 64;
  if (memory == nullptr && posix_memalign(&memory, line_bytes, size + 1) != 0) return nullptr;
  return memory;
}

void release(void* memory) noexcept {
  std::uint64_t offset = 0;
  if (haul_private_in_arena(memory, 1, &offset)) {
    haul_free(memory);
  } else {
    std::free(memory);
  }
}

}  // namespace

// The call is collective, so every rank creates a window here, even one whose part is small or
// finds no room in the arena.
extern "C" [[gnu::visibility("default")]] int MPI_Win_allocate(Aint bytes, int unit, Info info,
                                                               Comm comm, void* base,
                                                               Window* window) {
  auto* create = is_mpich() ? reinterpret_cast<Create*>(next("MPI_Win_create")) : nullptr;
  if (create == nullptr) {
    auto* theirs = reinterpret_cast<Allocate*>(next("MPI_Win_allocate"));
    return theirs != nullptr ? theirs(bytes, unit, info, comm, base, window) : no_mpi;
  }
  void* memory = base != nullptr ? allocate(bytes) : nullptr;
  if (memory == nullptr) {
    auto* tell = reinterpret_cast<CallErrorHandler*>(next("MPI_Comm_call_errhandler"));
    if (tell != nullptr) tell(comm, no_memory);
    return no_memory;
  }
  const int result = create(memory, bytes, unit, info, comm, window);
  if (result == success) {
    *static_cast<void**>(base) = memory;
    remember(*window, memory);
  } else {
    release(memory);
  }
  return result;
}

extern "C" [[gnu::visibility("default")]] int MPI_Win_free(Window* window) {
  const Window named = window != nullptr && is_mpich() ? *window : 0;
  void* memory = named != 0 ? forget(named) : nullptr;
  auto* theirs = reinterpret_cast<Free*>(next("MPI_Win_free"));
  const int result = theirs != nullptr ? theirs(window) : no_mpi;
  if (result == success) {
    release(memory);
  } else if (memory != nullptr) {
    remember(named, memory);
  }
  return result;
}

extern "C" [[gnu::visibility("default")]] int MPI_Win_get_attr(AnyWindow window, int key,
                                                               void* value, int* found) {
  auto* theirs = reinterpret_cast<GetAttribute*>(next("MPI_Win_get_attr"));
  const int result = theirs != nullptr ? theirs(window, key, value, found) : no_mpi;
  if (result != success || *found == 0 || key != flavor_key) return result;
  const ListLock lock;
  if (find(static_cast<Window>(window)) != nullptr) *static_cast<int**>(value) = &allocated_flavor;
  return result;
}
