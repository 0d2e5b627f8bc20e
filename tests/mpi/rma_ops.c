// One-sided transfers beyond the plain ones of rma.c: requests, flushes, derived datatypes, large,
// many, and progress at a target that is busy elsewhere.
#include <stdlib.h>
#include <string.h>

#include "windows.h"

enum { request_bytes = 40000, request_count = 4 };

static void use_requests(Window* window) {
  const int right = right_in(window);
  unsigned char* out = allocate(request_count * request_bytes);
  unsigned char* in = allocate(request_count * request_bytes);
  MPI_Request requests[request_count];
  fill(out, request_count * request_bytes, seed_of(1, window->rank, 0, 0));
  MPI_Win_lock_all(0, window->win);
  for (int i = 0; i < request_count; i++) {
    MPI_Rput(out + i * request_bytes, request_bytes, MPI_BYTE, right, i * request_bytes,
             request_bytes, MPI_BYTE, window->win, &requests[i]);
  }
  MPI_Waitall(request_count, requests, MPI_STATUSES_IGNORE);
  MPI_Win_flush_all(window->win);
  for (int i = 0; i < request_count; i++) {
    MPI_Rget(in + i * request_bytes, request_bytes, MPI_BYTE, right, i * request_bytes,
             request_bytes, MPI_BYTE, window->win, &requests[i]);
  }
  MPI_Waitall(request_count, requests, MPI_STATUSES_IGNORE);
  expect(in, request_count * request_bytes, seed_of(1, window->rank, 0, 0), "put, then got");
  int three[3] = {1, 2, 3};
  int before[3] = {0};
  MPI_Raccumulate(three, 3, MPI_INT, right, 0, 3, MPI_INT, MPI_REPLACE, window->win, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Win_flush_local(right, window->win);
  MPI_Rget_accumulate(three, 3, MPI_INT, before, 3, MPI_INT, right, 0, 3, MPI_INT, MPI_SUM,
                      window->win, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Win_flush_local_all(window->win);
  require(memcmp(before, three, sizeof three) == 0, "before the sum: %d %d %d", before[0],
          before[1], before[2]);
  MPI_Win_unlock_all(window->win);
  free(out);
  free(in);
}

static void test_requests(void) {
  run_on_two_kinds(request_count * request_bytes, use_requests);
}

// A column of a matrix here becomes a row there, is got back as a column, and is added to.
static void use_datatypes(Window* window) {
  enum { rows = 120, columns = 30 };
  const int right = right_in(window);
  MPI_Datatype column;
  MPI_Type_vector(rows, 1, columns, MPI_INT, &column);
  MPI_Type_commit(&column);
  int* matrix = calloc(rows * columns, sizeof *matrix);
  int* back = calloc(rows * columns, sizeof *back);
  for (int i = 0; i < rows; i++) matrix[i * columns] = window->rank * 1000 + i;
  begin_access(window, sync_fence, right);
  MPI_Put(matrix, 1, column, right, 4096, rows, MPI_INT, window->win);
  MPI_Put(matrix, 1, column, right, 8192, 1, column, window->win);
  end_access(window, sync_fence, right);
  begin_access(window, sync_fence, right);
  MPI_Accumulate(matrix, 1, column, right, 8192, 1, column, MPI_SUM, window->win);
  MPI_Get(back, 1, column, right, 4096, rows, MPI_INT, window->win);
  end_access(window, sync_fence, right);
  int sums[rows * columns];
  memcpy(sums, window->base + 8192, sizeof sums);
  for (int i = 0; i < rows; i++) {
    const int left_has = left_in(window) * 1000 + i;
    require(back[i * columns] == matrix[i * columns], "row %d came back as %d", i,
            back[i * columns]);
    require(sums[i * columns] == 2 * left_has, "row %d is %d, not %d", i, sums[i * columns],
            2 * left_has);
    require(sums[i * columns + 1] == 0 && back[i * columns + 1] == 0, "row %d has an odd neighbour",
            i);
  }
  free(matrix);
  free(back);
  MPI_Type_free(&column);
}

static void test_datatypes(void) {
  run_on_two_kinds(65536, use_datatypes);
}

enum { large = (8 << 20) + 9 };

static void use_large(Window* window) {
  const int right = right_in(window);
  unsigned char* data = allocate(large);
  fill(data, large, seed_of(2, window->rank, 0, 0));
  begin_access(window, sync_lock_all, right);
  MPI_Put(data, large, MPI_BYTE, right, 0, large, MPI_BYTE, window->win);
  end_access(window, sync_lock_all, right);
  expect(window->base, large, seed_of(2, left_in(window), 0, 0), "a large put");
  memset(data, 0, large);
  begin_access(window, sync_lock_shared, right);
  MPI_Get(data, large, MPI_BYTE, right, 0, large, MPI_BYTE, window->win);
  end_access(window, sync_lock_shared, right);
  expect(data, large, seed_of(2, window->rank, 0, 0), "a large get");
  free(data);
}

static void test_large(void) {
  run_on_two_kinds(large, use_large);
}

// Many small ones in one epoch, each to its own place.
static void use_many(Window* window) {
  enum { count = 2000 };
  long* values = allocate(count * sizeof *values);
  const int right = right_in(window);
  begin_access(window, sync_fence, right);
  for (int i = 0; i < count; i++) {
    values[i] = (long)window->rank * count + i;
    MPI_Put(&values[i], 1, MPI_LONG, right, i * (int)sizeof(long), 1, MPI_LONG, window->win);
  }
  end_access(window, sync_fence, right);
  for (int i = 0; i < count; i++) {
    long got = -1;
    memcpy(&got, window->base + (size_t)i * sizeof got, sizeof got);
    require(got == (long)left_in(window) * count + i, "put %d brought %ld", i, got);
  }
  free(values);
}

static void test_many(void) {
  run_on_two_kinds(2000 * sizeof(long), use_many);
}

// Rank 0 waits for a message that is sent only after its window has been changed.
static void change_a_waiting_target(Window* window) {
  const int last = window->size - 1;
  int token = 7;
  if (window->rank == last) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window->win);
    MPI_Put(&token, 1, MPI_INT, 0, 0, 1, MPI_INT, window->win);
    MPI_Win_unlock(0, window->win);
    int seen = 0;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window->win);
    MPI_Get(&seen, 1, MPI_INT, 0, 0, 1, MPI_INT, window->win);
    MPI_Win_unlock(0, window->win);
    require(seen == token, "a waiting target's memory is %d", seen);
    MPI_Send(&token, 1, MPI_INT, 0, 1, window->comm);
  } else if (window->rank == 0) {
    MPI_Recv(&token, 1, MPI_INT, last, 1, window->comm, MPI_STATUS_IGNORE);
  }
}

static void test_waiting_target(void) {
  run_on_two_kinds(64, change_a_waiting_target);
}

int main(int argc, char** argv) {
  const TestCase cases[] = {
      {"requests", test_requests}, {"datatypes", test_datatypes},           {"large", test_large},
      {"many", test_many},         {"waiting_target", test_waiting_target},
  };
  return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, sizeof cases / sizeof cases[0]);
}
