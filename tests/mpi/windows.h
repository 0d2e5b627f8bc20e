// Windows of every kind behind one face, for the tests of one-sided communication.
#ifndef HAUL_TESTS_MPI_WINDOWS_H
#define HAUL_TESTS_MPI_WINDOWS_H

#include "harness.h"

typedef enum WindowKind {
  window_create,
  window_create_on_alloc_mem,
  window_allocate,
  window_allocate_shared,
  window_dynamic,
  window_kind_count
} WindowKind;

// Displacements are bytes. `origin[r]` is where rank r's memory begins: 0, or its address if
// dynamic.
typedef struct Window {
  WindowKind kind;
  const char* name;
  MPI_Win win;
  MPI_Comm comm;  // of all ranks; of those that share memory, if the kind needs that
  int rank;
  int size;
  unsigned char* base;  // this rank's memory, zeroed
  MPI_Aint bytes;
  MPI_Aint* origin;
} Window;

// Collective. False, on all ranks, if the MPI makes no such window; then there is nothing to close.
bool open_window(Window* window, WindowKind kind, MPI_Aint bytes);
void close_window(Window* window);

// Runs the test on memory of the program's and on memory of the MPI's, or skips the case.
void run_on_two_kinds(MPI_Aint bytes, void (*run)(Window*));

int right_in(const Window* window);
int left_in(const Window* window);

typedef enum Sync {
  sync_fence,
  sync_post_start,
  sync_lock_shared,
  sync_lock_exclusive,
  sync_lock_all,
  sync_count
} Sync;

const char* sync_name(Sync sync);

// From begin to end this rank may access the memory of `target`. After the end, which is
// collective, all ranks' accesses are done and seen, and this rank may read its own memory.
void begin_access(const Window* window, Sync sync, int target);
void end_access(const Window* window, Sync sync, int target);

#endif
