// What the MPI test programs share: a table of cases run in order by all ranks, data that both
// sides can compute, and the one way to fail. Any number of ranks from two on.
#ifndef HAUL_TESTS_MPI_HARNESS_H
#define HAUL_TESTS_MPI_HARNESS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct TestCase {
  const char* name;
  void (*run)(void);  // called by every rank of MPI_COMM_WORLD
} TestCase;

// Of MPI_COMM_WORLD; valid inside a case.
extern int my_rank;
extern int rank_count;

// Runs the cases, those named in argv alone if any are (all but those with `-NAME`). Rank 0 prints
// "begin NAME", then "ok NAME: TIME" or "skip NAME: REASON" for each, and the count at the end.
// Returns main's status. thread_level is what the program needs; an MPI that offers less skips
// every case.
int run_cases(int argc, char** argv, int thread_level, const TestCase* cases, size_t count);

// Prints the sentence with the case and the rank, and aborts all ranks. Callable from any thread.
_Noreturn void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

// fail() unless the condition holds.
void require(bool condition, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Says that this MPI lacks what the case tests; all ranks must agree, and the case returns at once.
void skip(const char* reason);

// malloc that does not return NULL; free() releases it.
void* allocate(size_t bytes);

// Bytes that depend on the seed and on their place.
void fill(void* buffer, size_t bytes, uint64_t seed);

// fail()s with the first byte that is not what fill() put there. `what` says whose bytes they are.
void expect(const void* buffer, size_t bytes, uint64_t seed, const char* what);

// fail()s unless every byte has this value: what lies beyond a message must not change.
void expect_bytes(const void* buffer, size_t bytes, unsigned char value, const char* what);

// One seed out of up to four small numbers, such as case, sender, receiver and count.
uint64_t seed_of(int a, int b, int c, int d);

// A reproducible stream of numbers.
typedef struct Random {
  uint64_t state;
} Random;
uint64_t random_next(Random* random);
int random_below(Random* random, int limit);  // 0 <= result < limit

// Lets another process run: for loops that poll, as there may be more ranks than cores.
void yield_core(void);

// The ranks beside this one in the ring of all ranks.
int right_of_me(void);
int left_of_me(void);

#endif
