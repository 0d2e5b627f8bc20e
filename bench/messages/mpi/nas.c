// Random numbers, start and end.
#include "bench/messages/mpi/nas.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "bench/messages/mpi/common.h"
#include "bench/messages/mpi/timed.h"

static const uint64_t multiplier = 1220703125, seed = 314159265;
static const uint64_t mask = ((uint64_t)1 << 46) - 1;

// The low 46 bits of a product are those of the wrapped one.
struct Random random_after(uint64_t count) {
  uint64_t power = multiplier, state = seed;
  for (; count > 0; count >>= 1) {
    if (count & 1) state = state * power & mask;
    power = power * power & mask;
  }
  return (struct Random){state};
}

double next_random(struct Random* random) {
  random->state = random->state * multiplier & mask;
  return (double)random->state * 0x1p-46;
}

struct Run begin_run(int* argc, char*** argv) {
  if (*argc != 4 || strlen((*argv)[1]) != 1) fail("`haul bench nas` runs this program");
  struct Run run = {.class_name = (*argv)[1][0]};
  const char* cpus = (*argv)[2];
  const int early = strcmp((*argv)[3], "early") == 0;
  if (early) pin_to(cpus);
  MPI_Init(argc, argv);
  if (!early) pin_to(cpus);
  MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);
  if ((run.ranks & (run.ranks - 1)) != 0) fail("%d ranks are no power of two", run.ranks);
  return run;
}

struct Timing begin_timing(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  reset_comm_time();
  return (struct Timing){now_us()};
}

struct Told end_timing(struct Timing timing) {
  const double own_us = now_us() - timing.begin_us, comm_us = comm_time_us();
  const double own_s = own_us * 1e-6;
  struct Told told = {0, mean_comm_share(comm_us, own_us)};
  MPI_Reduce(&own_s, &told.seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return told;
}

void end_run(const struct Run* run, const char* kernel, struct Told told, double operations) {
  if (run->rank == 0) {
    printf("nas %s %c %d %.6f %.3f %.4f\n", kernel, run->class_name, run->ranks, told.seconds,
           operations / told.seconds * 1e-6, told.comm_share);
    fflush(stdout);
  }
  MPI_Finalize();
}
