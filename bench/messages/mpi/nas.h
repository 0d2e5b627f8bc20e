// What haul's NAS kernels share: the benchmarks' random numbers and how a result is told.
//
// The kernels are haul's own, written from the rules of the NAS Parallel Benchmarks (D. Bailey et
// al., RNR-94-007, and the verification values of NPB 3): same numbers in, same operations, same
// verification, own code.
#pragma once

#include <stdint.h>

// x -> 5^13 x mod 2^46, starting from 314159265.
struct Random {
  uint64_t state;
};
// As if `count` numbers had been taken.
struct Random random_after(uint64_t count);
double next_random(struct Random* random);  // in (0, 1)

struct Run {
  char class_name;
  int rank, ranks;
};
// Reads CLASS CPUS WHEN (as bench.c does), pins and starts MPI. The number of ranks must be a power
// of two.
struct Run begin_run(int* argc, char*** argv);

// Around the part that the rules time.
struct Timing {
  double begin_us;
};
struct Timing begin_timing(void);
struct Told {
  double seconds;     // of the slowest rank; on rank 0
  double comm_share;  // mean of the ranks
};
struct Told end_timing(struct Timing timing);

// Prints "nas KERNEL CLASS RANKS SECONDS MOPS COMM_SHARE" on rank 0 and ends MPI. A rank that could
// not verify its result has ended the run before.
void end_run(const struct Run* run, const char* kernel, struct Told told, double operations);
