// One-sided communication: windows of every kind under every way to synchronise.
#include <stdlib.h>
#include <string.h>

#include "windows.h"

enum { slot = 140000, counters = 64, window_bytes = 2 * slot + counters * (int)sizeof(int) };

// Puts into the right neighbour, gets from it what it has had from the start, adds to counters of
// rank 0.
static void access_all(Window* window, Sync sync, int bytes, int round) {
  const int right = right_in(window);
  const int left = left_in(window);
  unsigned char* out = allocate((size_t)bytes);
  unsigned char* in = allocate((size_t)bytes);
  fill(out, (size_t)bytes, seed_of(1, window->rank, bytes, round));
  fill(window->base + slot, (size_t)bytes, seed_of(2, window->rank, bytes, round));
  memset(window->base + 2 * slot, 0, counters * sizeof(int));
  begin_access(window, sync, right);
  MPI_Put(out, bytes, MPI_BYTE, right, window->origin[right], bytes, MPI_BYTE, window->win);
  MPI_Get(in, bytes, MPI_BYTE, right, window->origin[right] + slot, bytes, MPI_BYTE, window->win);
  end_access(window, sync, right);
  expect(in, (size_t)bytes, seed_of(2, right, bytes, round), "got from the right");
  expect(window->base, (size_t)bytes, seed_of(1, left, bytes, round), "put by the left");
  int ones[counters];
  for (int i = 0; i < counters; i++) ones[i] = i + window->rank;
  begin_access(window, sync, 0);
  MPI_Accumulate(ones, counters, MPI_INT, 0, window->origin[0] + 2 * slot, counters, MPI_INT,
                 MPI_SUM, window->win);
  end_access(window, sync, 0);
  for (int i = 0; i < counters && window->rank == 0; i++) {
    int sum = 0;
    memcpy(&sum, window->base + 2 * slot + (size_t)i * sizeof sum, sizeof sum);
    const int wanted = i * window->size + window->size * (window->size - 1) / 2;
    require(sum == wanted, "%s window, %s: counter %d is %d, not %d", window->name, sync_name(sync),
            i, sum, wanted);
  }
  MPI_Barrier(window->comm);
  free(out);
  free(in);
}

static void run_kind(WindowKind kind) {
  Window window;
  if (!open_window(&window, kind, window_bytes)) {
    skip("this MPI makes no window of this kind here");
    return;
  }
  const int sizes[] = {1, 5000, 131072 + 3};
  for (int sync = 0; sync < sync_count; sync++) {
    for (int i = 0; i < 3; i++) access_all(&window, (Sync)sync, sizes[i], sync);
  }
  close_window(&window);
}

static void test_create(void) {
  run_kind(window_create);
}
static void test_create_on_alloc_mem(void) {
  run_kind(window_create_on_alloc_mem);
}
static void test_allocate(void) {
  run_kind(window_allocate);
}
static void test_allocate_shared(void) {
  run_kind(window_allocate_shared);
}
static void test_dynamic(void) {
  run_kind(window_dynamic);
}

// Loads and stores of the neighbour's memory beside puts.
static void test_shared_by_loads(void) {
  Window window;
  if (!open_window(&window, window_allocate_shared, 4096)) {
    skip("this MPI makes no window of this kind here");
    return;
  }
  const int right = right_in(&window);
  MPI_Aint bytes = 0;
  int unit = 0;
  unsigned char* theirs = NULL;
  MPI_Win_shared_query(window.win, right, &bytes, &unit, &theirs);
  require(bytes == 4096 && unit == 1, "the right's shared memory has %ld bytes", (long)bytes);
  MPI_Win_lock_all(0, window.win);
  fill(theirs, 4000, seed_of(3, window.rank, 0, 0));
  MPI_Win_sync(window.win);
  MPI_Barrier(window.comm);
  MPI_Win_sync(window.win);
  expect(window.base, 4000, seed_of(3, left_in(&window), 0, 0), "stored by the left");
  MPI_Put(&my_rank, 1, MPI_INT, right, 4092, 1, MPI_INT, window.win);
  MPI_Win_unlock_all(window.win);
  MPI_Barrier(window.comm);
  int got = -1;
  memcpy(&got, window.base + 4092, sizeof got);
  require(window.size == 1 || got == left_of_me(), "the left put %d", got);
  close_window(&window);
}

// Several pieces of memory, attached and detached while the window lives.
static void test_dynamic_pieces(void) {
  Window window;
  if (!open_window(&window, window_dynamic, 64)) {
    skip("this MPI makes no window of this kind here");
    return;
  }
  enum { pieces = 4, bytes = 10000 };
  unsigned char* memory[pieces];
  MPI_Aint mine[pieces];
  MPI_Aint* all = allocate((size_t)(pieces * rank_count) * sizeof *all);
  unsigned char* out = allocate(bytes);
  for (int round = 0; round < 2; round++) {
    for (int p = 0; p < pieces; p++) {
      memory[p] = allocate(bytes);
      memset(memory[p], 0, bytes);
      MPI_Win_attach(window.win, memory[p], bytes);
      MPI_Get_address(memory[p], &mine[p]);
    }
    MPI_Allgather(mine, pieces, MPI_AINT, all, pieces, MPI_AINT, window.comm);
    const int right = right_in(&window);
    MPI_Win_lock_all(0, window.win);
    for (int p = 0; p < pieces; p++) {
      fill(out, bytes, seed_of(4, my_rank, p, round));
      MPI_Put(out, bytes, MPI_BYTE, right, all[right * pieces + p], bytes, MPI_BYTE, window.win);
      MPI_Win_flush(right, window.win);
    }
    MPI_Win_unlock_all(window.win);
    MPI_Barrier(window.comm);
    for (int p = 0; p < pieces; p++) {
      expect(memory[p], bytes, seed_of(4, left_of_me(), p, round), "put into an attached piece");
      MPI_Win_detach(window.win, memory[p]);
      free(memory[p]);
    }
    MPI_Barrier(window.comm);
  }
  free(out);
  free(all);
  close_window(&window);
}

// Only neighbours take part in an epoch, and MPI_Win_test sees its end.
static void test_post_start_of_some(void) {
  Window window;
  if (!open_window(&window, window_create, 1024)) {
    skip("this MPI makes no window of this kind here");
    return;
  }
  MPI_Group world;
  MPI_Group sources;
  MPI_Group targets;
  MPI_Comm_group(window.comm, &world);
  const int left = left_in(&window);
  const int right = right_in(&window);
  MPI_Group_incl(world, 1, &left, &sources);
  MPI_Group_incl(world, 1, &right, &targets);
  for (int round = 0; round < 20; round++) {
    unsigned char out[1000];
    fill(out, sizeof out, seed_of(5, my_rank, round, 0));
    MPI_Win_post(sources, 0, window.win);
    MPI_Win_start(targets, 0, window.win);
    MPI_Put(out, sizeof out, MPI_BYTE, right, 0, sizeof out, MPI_BYTE, window.win);
    MPI_Win_complete(window.win);
    int over = 0;
    while (!over) {
      MPI_Win_test(window.win, &over);
      yield_core();
    }
    expect(window.base, sizeof out, seed_of(5, left, round, 0), "put within a pair's epoch");
  }
  MPI_Group_free(&world);
  MPI_Group_free(&sources);
  MPI_Group_free(&targets);
  close_window(&window);
}

// An exclusive lock is exclusive: read, add, write back, by all at once, loses nothing.
static void test_exclusive(void) {
  Window window;
  if (!open_window(&window, window_create, 64)) {
    skip("this MPI makes no window of this kind here");
    return;
  }
  enum { rounds = 12 };
  for (int round = 0; round < rounds; round++) {
    long value = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
    MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window.win);
    MPI_Win_flush(0, window.win);
    value++;
    MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window.win);
    MPI_Win_unlock(0, window.win);
  }
  MPI_Barrier(window.comm);
  long sum = 0;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win);
  MPI_Get(&sum, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window.win);
  MPI_Win_unlock(0, window.win);
  require(sum == (long)rounds * rank_count, "%d times %d increments made %ld", rounds, rank_count,
          sum);
  close_window(&window);
}

int main(int argc, char** argv) {
  const TestCase cases[] = {
      {"create", test_create},
      {"create_on_alloc_mem", test_create_on_alloc_mem},
      {"allocate", test_allocate},
      {"allocate_shared", test_allocate_shared},
      {"dynamic", test_dynamic},
      {"shared_by_loads", test_shared_by_loads},
      {"dynamic_pieces", test_dynamic_pieces},
      {"post_start_of_some", test_post_start_of_some},
      {"exclusive", test_exclusive},
  };
  return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, sizeof cases / sizeof cases[0]);
}
