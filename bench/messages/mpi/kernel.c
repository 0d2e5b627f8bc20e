// Arguments, steps, medians.
#include "bench/messages/mpi/kernel.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/messages/mpi/common.h"
#include "bench/messages/mpi/timed.h"

enum { LEAST_SAMPLES = 5, MOST_SAMPLES = 200, WARM_STEPS = 5 };
static const double sample_us = 1000;

int run_kernel(int argc, char** argv, void (*measure)(struct Kernel* kernel, const char* form)) {
  if (argc != 6) fail("`haul bench mpi-kernels` runs this program with 5 arguments");
  const int early = strcmp(argv[5], "early") == 0;
  if (early) pin_to(argv[3]);
  MPI_Init(&argc, &argv);
  if (!early) pin_to(argv[3]);
  struct Kernel kernel = {.budget_us = atof(argv[4])};
  MPI_Comm_rank(MPI_COMM_WORLD, &kernel.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &kernel.ranks);
  if ((kernel.ranks & (kernel.ranks - 1)) != 0) fail("%d ranks are no power of two", kernel.ranks);
  char* end = argv[2];
  for (const char* at = argv[2]; *at != 0; at = *end == ',' ? end + 1 : end) {
    kernel.field_bytes = strtoull(at, &end, 10);
    if (end == at) fail("'%s' is no list of sizes", argv[2]);
    measure(&kernel, argv[1]);
  }
  MPI_Finalize();
  return 0;
}

// The time of `count` steps of this rank.
static double make_steps(struct Kernel* kernel, long count) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_us = now_us();
  for (long i = 0; i < count; i++) kernel->step(kernel);
  return now_us() - begin_us;
}

static int by_time(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static long within(double value, long least, long most) {
  return value < (double)least ? least : value > (double)most ? most : (long)value;
}

uint64_t time_kernel(struct Kernel* kernel, const char* form, size_t message_bytes) {
  make_steps(kernel, WARM_STEPS);
  double once_us = make_steps(kernel, WARM_STEPS) / WARM_STEPS;
  MPI_Bcast(&once_us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (once_us < 0.01) once_us = 0.01;
  const long steps = within(sample_us / once_us, 1, 10000);
  const int samples =
      (int)within(kernel->budget_us / (once_us * (double)steps), LEAST_SAMPLES, MOST_SAMPLES);
  double own[MOST_SAMPLES], slowest[MOST_SAMPLES], total_us = 0, comm_us = 0;
  for (int i = 0; i < samples; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    reset_comm_time();
    own[i] = make_steps(kernel, steps);
    comm_us += comm_time_us();
    total_us += own[i];
  }
  const double share = mean_comm_share(comm_us, total_us);
  MPI_Reduce(own, slowest, samples, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (kernel->rank == 0) {
    qsort(slowest, (size_t)samples, sizeof *slowest, by_time);
    const double median_us = (slowest[(samples - 1) / 2] + slowest[samples / 2]) / 2;
    printf("kernel %s %d %zu %zu %.4f %.4f\n", form, kernel->ranks, kernel->field_bytes,
           message_bytes, median_us / (double)steps, share);
    fflush(stdout);
  }
  return 2 * WARM_STEPS + (uint64_t)samples * (uint64_t)steps;
}
