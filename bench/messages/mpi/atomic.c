// MPI_Fetch_and_op between two ranks, one operation at a time.
// Usage: atomic CPUS COUNT SECONDS     rank 0 asks, rank 1 owns the word and waits in MPI
// Rank 0 prints one line: median_us p99_us operations_per_s count.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/messages/mpi/common.h"

enum { warm_calls = 20 };

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void ask(MPI_Win window, long count, double seconds) {
  double* times = malloc((size_t)count * sizeof *times);
  if (times == NULL) fail("no memory for %ld times", count);
  long done = 0;
  double begin = 0;
  for (long i = -warm_calls; i < count; i++) {
    const long one = 1;
    long old = -1;
    const double before = now_us();
    if (i == 0) begin = before;
    if (i > 0 && before - begin > seconds * 1e6) break;
    MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, 0, MPI_SUM, window);
    MPI_Win_flush(1, window);
    if (i >= 0) times[done++] = now_us() - before;
    if (old != i + warm_calls) fail("MPI_Fetch_and_op gave %ld and not %ld", old, i + warm_calls);
  }
  const double total_us = now_us() - begin;
  qsort(times, (size_t)done, sizeof *times, compare);
  printf("%.3f %.3f %.1f %ld\n", times[done / 2], times[done * 99 / 100],
         (double)done * 1e6 / total_us, done);
  free(times);
}

int main(int argc, char** argv) {
  if (argc != 4) fail("usage: atomic CPUS COUNT SECONDS");
  pin_to(argv[1]);
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) fail("two ranks are needed");
  long* word = NULL;
  MPI_Win window;
  MPI_Win_allocate(sizeof *word, sizeof *word, MPI_INFO_NULL, MPI_COMM_WORLD, &word, &window);
  *word = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  if (rank == 0) ask(window, atol(argv[2]), atof(argv[3]));
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
