// What the kernels `spectral` and `halo` share: arguments, a time for each step, and how it is
// told.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct Kernel {
  int rank, ranks;
  size_t field_bytes;  // of a rank
  double budget_us;
  void* state;
  // Makes one step; all ranks make the same number. Its time and its share in MPI are measured.
  void (*step)(struct Kernel* kernel);
};

// Reads FORM SIZES CPUS BUDGET_US WHEN, pins and starts MPI, calls `measure` for each size and ends
// MPI. The number of ranks must be a power of two.
int run_kernel(int argc, char** argv, void (*measure)(struct Kernel* kernel, const char* form));

// Makes steps for about the budget and prints, on rank 0,
//   kernel FORM RANKS FIELD_BYTES MESSAGE_BYTES US COMM_SHARE
// US: the median time of a step, of the slowest rank. Returns how many steps were made.
uint64_t time_kernel(struct Kernel* kernel, const char* form, size_t message_bytes);

// What an element holds before the first step: any two differ.
static inline uint64_t element(uint64_t place) {
  return (place + 1) * 0x9e3779b97f4a7c15;
}
