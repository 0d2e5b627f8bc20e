// How much of a message's time a rank can compute in, on either side.
// Usage: overlap TEST SIZES CPUS BUDGET_US WHEN
//   nbc      in the manner of IMB-NBC: post, compute, wait
//   stream   in that of paper 004, section 3.2: a stream of tasks through three buffers; while one
//   is
//            computed, the next two are on their way and are tested between slices of the work
// Output, for the sender (rank 0) and the receiver (rank 1) of each size:
//   overlap TEST BYTES SIDE PURE_US CPU_US OVERLAPPED_US RATIO
// PURE_US: the time of a message without computing; CPU_US: that of the computing, which is made as
// long as the slower side's PURE_US; OVERLAPPED_US: of both. RATIO: which part of the shorter of
// the first two was hidden, 0 to 1. Medians; the three take turns.
//
// Both sides compute. The work is a chain of shifts in a register: it touches no memory. Every byte
// of some messages before and after the timed ones is checked, and both ends of every timed one.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/messages/mpi/common.h"
#include "bench/messages/mpi/content.h"

enum { DEPTH = 3, SLICES = 8, TASKS = 24, LEAST_SAMPLES = 9, MOST_SAMPLES = 200 };

struct Overlap {
  int rank;
  size_t bytes;
  uint64_t stamp;  // of the last message; the same on both sides
  long rounds;     // of the work for a message; 0: none
  int whole;       // every byte is written and checked
  unsigned char* buffers[DEPTH];
  MPI_Request requests[DEPTH];
};

// ---- work
// ----------------------------------------------------------------------------------------

static volatile uint64_t worked = 88172645463325252;

static void work(long rounds) {
  uint64_t x = worked;
  for (long i = 0; i < rounds; i++) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  worked = x;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}
static double median(double* samples, int count) {
  qsort(samples, (size_t)count, sizeof *samples, by_value);
  return (samples[(count - 1) / 2] + samples[count / 2]) / 2;
}

static double rounds_per_us(void) {
  enum { TRIALS = 51, ROUNDS = 20000 };
  double us[TRIALS];
  for (int i = 0; i < TRIALS; i++) {
    const double begin_us = now_us();
    work(ROUNDS);
    us[i] = now_us() - begin_us;
  }
  return ROUNDS / median(us, TRIALS);
}

// ---- messages
// ------------------------------------------------------------------------------------

static void write_message(const struct Overlap* o, unsigned char* at, uint64_t stamp) {
  if (o->whole)
    fill(at, o->bytes, seed_of(0, 0, stamp));
  else
    fill_ends(at, o->bytes, seed_of(0, 0, stamp));
}

static void check_message(const struct Overlap* o, const unsigned char* at, uint64_t stamp) {
  const uint64_t seed = seed_of(0, 0, stamp);
  const size_t wrong =
      o->whole ? first_wrong(at, o->bytes, seed) : first_wrong_end(at, o->bytes, seed);
  if (wrong < o->bytes) fail("overlap of %zu bytes: byte %zu is wrong", o->bytes, wrong);
}

static void post(struct Overlap* o, int slot) {
  if (o->rank == 0)
    MPI_Isend(o->buffers[slot], (int)o->bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &o->requests[slot]);
  else
    MPI_Irecv(o->buffers[slot], (int)o->bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &o->requests[slot]);
}

static void wait_for(struct Overlap* o, int slot) {
  MPI_Wait(&o->requests[slot], MPI_STATUS_IGNORE);
}

// Post, compute, wait; returns this side's time.
static double run_nbc(struct Overlap* o) {
  o->stamp++;
  if (o->rank == 0) write_message(o, o->buffers[0], o->stamp);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_us = now_us();
  post(o, 0);
  if (o->rounds > 0) work(o->rounds);
  wait_for(o, 0);
  const double elapsed_us = now_us() - begin_us;
  if (o->rank == 1) check_message(o, o->buffers[0], o->stamp);
  return elapsed_us;
}

static void work_and_test(struct Overlap* o) {
  for (int slice = 0; slice < SLICES && o->rounds > 0; slice++) {
    work(o->rounds / SLICES);
    for (int slot = 0; slot < DEPTH; slot++) {
      int done;
      MPI_Test(&o->requests[slot], &done, MPI_STATUS_IGNORE);
    }
  }
}

// The sender computes a task, and sends it while it computes the next ones.
static void send_tasks(struct Overlap* o) {
  for (int task = 0; task < TASKS; task++) {
    const int slot = task % DEPTH;
    wait_for(o, slot);
    work_and_test(o);
    write_message(o, o->buffers[slot], o->stamp + (uint64_t)task);
    post(o, slot);
  }
  MPI_Waitall(DEPTH, o->requests, MPI_STATUSES_IGNORE);
}

static void receive_tasks(struct Overlap* o) {
  for (int task = 0; task < DEPTH - 1; task++) post(o, task);
  for (int task = 0; task < TASKS; task++) {
    const int slot = task % DEPTH, ahead = task + DEPTH - 1;
    if (ahead < TASKS) post(o, ahead % DEPTH);
    wait_for(o, slot);
    check_message(o, o->buffers[slot], o->stamp + (uint64_t)task);
    work_and_test(o);
  }
}

// Returns this side's time for each task.
static double run_stream(struct Overlap* o) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_us = now_us();
  if (o->rank == 0)
    send_tasks(o);
  else
    receive_tasks(o);
  const double elapsed_us = now_us() - begin_us;
  o->stamp += TASKS;
  return elapsed_us / TASKS;
}

typedef double (*Run)(struct Overlap* o);

// ---- measuring
// -----------------------------------------------------------------------------------

static void check_whole(struct Overlap* o, Run run) {
  o->whole = 1;
  o->rounds = 0;
  for (int i = 0; i < DEPTH; i++) {
    for (int slot = 0; slot < DEPTH; slot++) memset(o->buffers[slot], 0xa5, o->bytes);
    run(o);
  }
  o->whole = 0;
}

static double time_work(long rounds) {
  const double begin_us = now_us();
  work(rounds);
  return now_us() - begin_us;
}

static double hidden_part(double pure_us, double cpu_us, double overlapped_us) {
  const double shorter = pure_us < cpu_us ? pure_us : cpu_us;
  const double part = (pure_us + cpu_us - overlapped_us) / shorter;
  return part < 0 ? 0 : part > 1 ? 1 : part;
}

static double greater_of_both(double value) {
  double greater = 0;
  MPI_Allreduce(&value, &greater, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return greater;
}

static void measure(const char* test, Run run, size_t bytes, double budget_us) {
  struct Overlap o = {.bytes = bytes};
  MPI_Comm_rank(MPI_COMM_WORLD, &o.rank);
  for (int slot = 0; slot < DEPTH; slot++) {
    o.buffers[slot] = allocate(bytes);
    o.requests[slot] = MPI_REQUEST_NULL;
  }
  check_whole(&o, run);
  double first[LEAST_SAMPLES], pure[MOST_SAMPLES], cpu[MOST_SAMPLES], overlapped[MOST_SAMPLES];
  for (int i = 0; i < LEAST_SAMPLES; i++) first[i] = run(&o);
  const double once_us = greater_of_both(median(first, LEAST_SAMPLES));
  const double sample_us = 4 * once_us * (run == run_stream ? TASKS : 1);
  int samples = (int)greater_of_both(budget_us / sample_us);
  if (samples < LEAST_SAMPLES) samples = LEAST_SAMPLES;
  if (samples > MOST_SAMPLES) samples = MOST_SAMPLES;
  const long rounds = (long)(once_us * rounds_per_us());
  for (int i = 0; i < samples; i++) {
    o.rounds = 0;
    pure[i] = run(&o);
    cpu[i] = time_work(rounds);
    o.rounds = rounds;
    overlapped[i] = run(&o);
  }
  check_whole(&o, run);
  double own[4] = {median(pure, samples), median(cpu, samples), median(overlapped, samples)};
  own[3] = hidden_part(own[0], own[1], own[2]);
  double both[2][4];
  MPI_Gather(own, 4, MPI_DOUBLE, both, 4, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (int side = 0; o.rank == 0 && side < 2; side++)
    printf("overlap %s %zu %s %.4f %.4f %.4f %.4f\n", test, bytes,
           side == 0 ? "sender" : "receiver", both[side][0], both[side][1], both[side][2],
           both[side][3]);
  fflush(stdout);
  for (int slot = 0; slot < DEPTH; slot++) free(o.buffers[slot]);
}

int main(int argc, char** argv) {
  if (argc != 6) fail("`haul bench mpi-overlap` runs this program with 5 arguments");
  const Run run = strcmp(argv[1], "stream") == 0 ? run_stream : run_nbc;
  if (run == run_nbc && strcmp(argv[1], "nbc") != 0) fail("there is no test '%s'", argv[1]);
  const int early = strcmp(argv[5], "early") == 0;
  if (early) pin_to(argv[3]);
  MPI_Init(&argc, &argv);
  if (!early) pin_to(argv[3]);
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) fail("overlap is measured between 2 ranks, not among %d", ranks);
  char* end = argv[2];
  for (const char* at = argv[2]; *at != 0; at = *end == ',' ? end + 1 : end) {
    const size_t bytes = strtoull(at, &end, 10);
    if (end == at || bytes == 0 || bytes > INT32_MAX) fail("'%s' is no list of sizes", argv[2]);
    measure(argv[1], run, bytes, atof(argv[4]));
  }
  MPI_Finalize();
  return 0;
}
