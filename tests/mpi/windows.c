#include "windows.h"

#include <stdlib.h>
#include <string.h>

static const char* const kind_names[] = {"created", "created on MPI_Alloc_mem", "allocated",
                                         "allocated shared", "dynamic"};

static int create(Window* window) {
  switch (window->kind) {
    case window_create:
      window->base = allocate((size_t)window->bytes);
      return MPI_Win_create(window->base, window->bytes, 1, MPI_INFO_NULL, window->comm,
                            &window->win);
    case window_create_on_alloc_mem:
      MPI_Alloc_mem(window->bytes, MPI_INFO_NULL, &window->base);
      return MPI_Win_create(window->base, window->bytes, 1, MPI_INFO_NULL, window->comm,
                            &window->win);
    case window_allocate:
      return MPI_Win_allocate(window->bytes, 1, MPI_INFO_NULL, window->comm, &window->base,
                              &window->win);
    case window_allocate_shared:
      return MPI_Win_allocate_shared(window->bytes, 1, MPI_INFO_NULL, window->comm, &window->base,
                                     &window->win);
    default: {
      const int code = MPI_Win_create_dynamic(MPI_INFO_NULL, window->comm, &window->win);
      if (code != MPI_SUCCESS) return code;
      window->base = allocate((size_t)window->bytes);
      return MPI_Win_attach(window->win, window->base, window->bytes);
    }
  }
}

static void exchange_origins(Window* window) {
  window->origin = allocate((size_t)window->size * sizeof *window->origin);
  MPI_Aint mine = 0;
  if (window->kind == window_dynamic) MPI_Get_address(window->base, &mine);
  MPI_Allgather(&mine, 1, MPI_AINT, window->origin, 1, MPI_AINT, window->comm);
}

bool open_window(Window* window, WindowKind kind, MPI_Aint bytes) {
  *window = (Window){.kind = kind, .name = kind_names[kind], .bytes = bytes};
  if (kind == window_allocate_shared) {
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &window->comm);
  } else {
    MPI_Comm_dup(MPI_COMM_WORLD, &window->comm);
  }
  MPI_Comm_rank(window->comm, &window->rank);
  MPI_Comm_size(window->comm, &window->size);
  MPI_Comm_set_errhandler(window->comm, MPI_ERRORS_RETURN);
  int made = create(window) == MPI_SUCCESS;
  int all_made = 0;
  MPI_Allreduce(&made, &all_made, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!all_made) {
    MPI_Comm_free(&window->comm);
    return false;
  }
  memset(window->base, 0, (size_t)bytes);
  exchange_origins(window);
  return true;
}

void close_window(Window* window) {
  MPI_Barrier(window->comm);
  if (window->kind == window_dynamic) MPI_Win_detach(window->win, window->base);
  unsigned char* memory = window->base;
  MPI_Win_free(&window->win);
  if (window->kind == window_create || window->kind == window_dynamic) free(memory);
  if (window->kind == window_create_on_alloc_mem) MPI_Free_mem(memory);
  MPI_Comm_free(&window->comm);
  free(window->origin);
}

int right_in(const Window* window) {
  return (window->rank + 1) % window->size;
}
int left_in(const Window* window) {
  return (window->rank + window->size - 1) % window->size;
}

const char* sync_name(Sync sync) {
  const char* const names[] = {"fence", "post and start", "shared lock", "exclusive lock",
                               "lock of all"};
  return names[sync];
}

void begin_access(const Window* window, Sync sync, int target) {
  MPI_Group group;
  switch (sync) {
    case sync_fence: MPI_Win_fence(0, window->win); break;
    case sync_post_start:
      MPI_Win_get_group(window->win, &group);
      MPI_Win_post(group, 0, window->win);
      MPI_Win_start(group, 0, window->win);
      MPI_Group_free(&group);
      break;
    case sync_lock_shared:
    case sync_lock_exclusive:
      // What ranks wrote into their own memory must be there before others come.
      MPI_Win_lock(MPI_LOCK_SHARED, window->rank, 0, window->win);
      MPI_Win_sync(window->win);
      MPI_Win_unlock(window->rank, window->win);
      MPI_Barrier(window->comm);
      MPI_Win_lock(sync == sync_lock_shared ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0,
                   window->win);
      break;
    default:
      MPI_Win_lock_all(0, window->win);
      MPI_Win_sync(window->win);
      MPI_Barrier(window->comm);
  }
}

void end_access(const Window* window, Sync sync, int target) {
  switch (sync) {
    case sync_fence: MPI_Win_fence(0, window->win); return;
    case sync_post_start:
      MPI_Win_complete(window->win);
      MPI_Win_wait(window->win);
      return;
    case sync_lock_shared:
    case sync_lock_exclusive: MPI_Win_unlock(target, window->win); break;
    default: MPI_Win_unlock_all(window->win);
  }
  MPI_Barrier(window->comm);
  MPI_Win_lock(MPI_LOCK_SHARED, window->rank, 0, window->win);
  MPI_Win_sync(window->win);
  MPI_Win_unlock(window->rank, window->win);
}

void run_on_two_kinds(MPI_Aint bytes, void (*run)(Window*)) {
  const WindowKind kinds[] = {window_create, window_allocate};
  for (int k = 0; k < 2; k++) {
    Window window;
    if (!open_window(&window, kinds[k], bytes)) {
      skip("this MPI makes no window of this kind here");
      return;
    }
    run(&window);
    close_window(&window);
  }
}
