// Random numbers, start and end.
#include "bench/messages/mpi/nas.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "bench/messages/mpi/common.h"

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

void end_run(const struct Run* run, const char* kernel, double seconds, double operations) {
  if (run->rank == 0) {
    printf("nas %s %c %d %.6f %.3f\n", kernel, run->class_name, run->ranks, seconds,
           operations / seconds * 1e-6);
    fflush(stdout);
  }
  MPI_Finalize();
}
