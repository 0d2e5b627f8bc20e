// haul's benchmark of messages: exchanges of each size with each kind of buffers, under whatever
// MPI it is compiled and launched with.
// Usage: bench TESTS KINDS SIZES CPUS CACHE_BYTES BUDGET_US WHEN
//   TESTS, KINDS, SIZES, CPUS   comma-separated; ranks are pinned to CPUS in turn
//   BUDGET_US                   how long to measure each figure
//   WHEN                        pin "early" (before MPI_Init) or "late", so that threads of the
//                               library may run on other CPUs
// Output, one line for each figure: row TEST KIND RANKS BYTES US GBPS LOOP_US LEAST_US
//   US: the median time of what is reported: a message there or back (pingpong), a message (rate,
//   bandwidth), else the whole exchange. LOOP_US: the same, with the making and unmaking of fresh
//   buffers. LEAST_US: the least time instead of the median; a busy machine disturbs it less.
// Every byte of some messages before and after the timed ones is checked. Of the timed messages,
// every byte is checked where a program would read it (rewritten, fresh), else the first and last
// word of a batch's last message.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/messages/mpi/buffers.h"
#include "bench/messages/mpi/common.h"
#include "bench/messages/mpi/content.h"
#include "bench/messages/mpi/exchange.h"

enum { MOST_SAMPLES = 400, LEAST_SAMPLES = 9, WARM_EXCHANGES = 120, CHECKED_EXCHANGES = 3 };
static const double batch_us = 200;

struct Measurement {
  const struct Test* test;
  struct Side side;
  struct Buffers buffers;
  uint64_t stamp;  // of the current exchange or batch; the same on all ranks
  int pieces_out, pieces_in;
  double budget_us;
};

// ---- content ---------------------------------------------------------------------------------

typedef void (*Filler)(unsigned char* at, size_t bytes, uint64_t seed);
typedef size_t (*Checker)(const unsigned char* at, size_t bytes, uint64_t seed);

static int is_summed(const struct Measurement* m) {
  int from, piece;
  m->test->origin(m->side.rank, m->side.ranks, 0, &from, &piece);
  return from == SUM_OF_ALL;
}

static void fill_out(const struct Measurement* m, struct Areas areas, Filler filler) {
  if (m->side.rank != 0 && is_summed(m)) filler = fill_evenly;
  for (int i = 0; i < m->pieces_out; i++)
    filler(areas.out + (size_t)i * m->side.bytes, m->side.bytes,
           seed_of(m->side.rank, i, m->stamp));
}

static void check_in(const struct Measurement* m, struct Areas areas, Checker checker) {
  for (int i = 0; i < m->pieces_in; i++) {
    int from, piece;
    m->test->origin(m->side.rank, m->side.ranks, i, &from, &piece);
    const size_t bytes = m->side.bytes;
    uint64_t seed = 0;
    for (int rank = 0; rank < m->side.ranks; rank++)
      if (from == rank || from == SUM_OF_ALL) seed += seed_of(rank, piece, m->stamp);
    const size_t wrong = checker(areas.in + (size_t)i * bytes, bytes, seed);
    if (wrong >= bytes) continue;
    char source[32] = "all ranks";
    if (from != SUM_OF_ALL) snprintf(source, sizeof source, "rank %d", from);
    fail("%s of %zu bytes, %s: byte %zu of what rank %d got from %s is wrong", m->test->name, bytes,
         kind_names[m->buffers.kind], wrong, m->side.rank, source);
  }
}

static void produce_all(void* context, struct Areas areas) {
  fill_out(context, areas, fill);
}
static void consume_all(void* context, struct Areas areas) {
  check_in(context, areas, first_wrong);
}

static int takes_part(const struct Measurement* m) {
  return !m->test->pair || m->side.rank < 2;
}

// Runs exchanges into areas that held something else, and checks every byte.
static void check_exchanges(struct Measurement* m) {
  struct Side plain = m->side;
  plain.produce = plain.consume = NULL;
  for (int i = 0; i < CHECKED_EXCHANGES; i++) {
    m->stamp++;
    if (!takes_part(m)) continue;
    const struct Areas areas = acquire(&m->buffers);
    fill_out(m, areas, fill);
    memset(areas.in, 0xa5, m->buffers.in_bytes);
    m->test->run(&plain, areas);
    check_in(m, areas, first_wrong);
    release(&m->buffers, areas);
  }
}

// ---- time ------------------------------------------------------------------------------------

// Makes `count` exchanges in a row and returns their time in microseconds.
static double time_batch(struct Measurement* m, long count) {
  const int marked = m->side.produce == NULL;
  m->stamp++;
  if (marked && takes_part(m)) fill_out(m, peek(&m->buffers, (size_t)count - 1), fill_ends);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = now_us();
  struct Areas areas = {NULL, NULL};
  for (long i = 0; takes_part(m) && i < count; i++) {
    if (!marked) m->stamp++;
    areas = acquire(&m->buffers);
    m->test->run(&m->side, areas);
    release(&m->buffers, areas);
  }
  const double elapsed = now_us() - begin;
  if (marked && takes_part(m)) check_in(m, areas, first_wrong_end);
  return elapsed;
}

// Makes one exchange with new buffers; *loop_us is its time including their making and unmaking.
static double time_fresh(struct Measurement* m, double* loop_us) {
  m->stamp++;
  const double begin = now_us();
  struct Areas areas = {NULL, NULL};
  if (takes_part(m)) {
    areas = acquire(&m->buffers);
    fill_out(m, areas, fill);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double sent = now_us();
  if (takes_part(m)) m->test->run(&m->side, areas);
  const double done = now_us();
  if (takes_part(m)) {
    check_in(m, areas, first_wrong);
    release(&m->buffers, areas);
  }
  *loop_us = now_us() - begin;
  return done - sent;
}

static double agree(double value) {
  MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return value;
}

// Warms up, since libraries learn from use, and returns the time of one exchange as rank 0 saw it.
static double warm_up(struct Measurement* m) {
  const int fresh = m->buffers.kind == FRESH;
  double spent = 0, last = 0, loop;
  for (long done = 0, count = 1; done < WARM_EXCHANGES; done += count) {
    const double elapsed = fresh ? time_fresh(m, &loop) : time_batch(m, count);
    last = agree(elapsed) / (double)count;
    spent += last * (double)count;
    if (spent > 10 * m->budget_us) break;
    if (!fresh && spent < m->budget_us) count = count < 16 ? count * 2 : 16;
  }
  return last > 0.01 ? last : 0.01;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}
static double median(double* samples, int count) {
  qsort(samples, (size_t)count, sizeof *samples, by_value);
  return (samples[(count - 1) / 2] + samples[count / 2]) / 2;
}

static long clamp(double value, long least, long most) {
  return value < (double)least ? least : value > (double)most ? most : (long)value;
}

static void measure(struct Measurement* m) {
  check_exchanges(m);
  const double once_us = warm_up(m);
  const int fresh = m->buffers.kind == FRESH;
  const long count = fresh ? 1 : clamp(batch_us / once_us, 1, 100000);
  const int samples =
      (int)clamp(m->budget_us / (once_us * (double)count), LEAST_SAMPLES, MOST_SAMPLES);
  double us[MOST_SAMPLES], loops[MOST_SAMPLES], slowest[MOST_SAMPLES];
  for (int i = 0; i < samples; i++) {
    us[i] = loops[i] = 0;
    const double elapsed = fresh ? time_fresh(m, &loops[i]) : time_batch(m, count);
    if (takes_part(m) && (!m->test->rank0 || m->side.rank == 0)) us[i] = elapsed;
  }
  check_exchanges(m);
  // Intel MPI 2021.18 over any libfabric provider takes parts of a reduction that follows a
  // broadcast of 32 KiB to some hundred KiB at once for parts of that, from four ranks on.
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Reduce(us, slowest, samples, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (m->side.rank != 0) return;
  const double reported = (double)count * m->test->one_in;
  const double median_us = median(slowest, samples) / reported;
  const double least_us = slowest[0] / reported;  // median() has sorted them
  const double loop_us = fresh ? median(loops, samples) / reported : median_us;
  const double moved = moved_messages(m->test, m->side.ranks) * (double)m->side.bytes;
  printf("row %s %s %d %zu %.4f %.6g %.4f %.4f\n", m->test->name, kind_names[m->buffers.kind],
         m->side.ranks, m->side.bytes, median_us, moved / median_us * 1e-3, loop_us, least_us);
  fflush(stdout);
}

static void measure_size(const struct Test* test, enum Kind kind, size_t bytes, size_t cache_bytes,
                         double budget_us) {
  struct Measurement m = {.test = test, .budget_us = budget_us};
  MPI_Comm_rank(MPI_COMM_WORLD, &m.side.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &m.side.ranks);
  m.side.bytes = bytes;
  m.side.context = &m;
  if (kind == REWRITTEN) {
    m.side.produce = produce_all;
    m.side.consume = consume_all;
  }
  m.pieces_out = test->pieces_out(m.side.rank, m.side.ranks);
  m.pieces_in = test->pieces_in(m.side.rank, m.side.ranks);
  m.buffers = make_buffers(kind, (size_t)m.pieces_out * bytes, (size_t)m.pieces_in * bytes,
                           cache_bytes, test->pair ? 2 : m.side.ranks);
  measure(&m);
  free_buffers(&m.buffers);
}

// ---- arguments -------------------------------------------------------------------------------

static enum Kind find_kind(const char* name) {
  for (int i = 0; i < KINDS; i++) {
    if (strcmp(kind_names[i], name) == 0) return (enum Kind)i;
  }
  fail("there are no buffers '%s'", name);
}

// Copies the next name of a list to `name` and returns what follows it; null at the end.
static const char* next_name(const char* list, char* name, size_t room) {
  if (list == NULL || *list == 0) return NULL;
  const size_t length = strcspn(list, ",");
  if (length == 0 || length >= room) fail("'%s' is no list of names", list);
  memcpy(name, list, length);
  name[length] = 0;
  return list + length + (list[length] == ',');
}

int main(int argc, char** argv) {
  if (argc != 8) {
    fprintf(stderr, "error: `haul bench mpi` runs this program with 7 arguments\n");
    return 2;
  }
  const int early = strcmp(argv[7], "early") == 0;
  if (early) pin_to(argv[4]);
  MPI_Init(&argc, &argv);
  if (!early) pin_to(argv[4]);
  const size_t cache_bytes = strtoull(argv[5], NULL, 10);
  const double budget_us = atof(argv[6]);
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 2) fail("one rank has nobody to send to; launch two or more");
  char name[32];
  for (const char* t = argv[1]; (t = next_name(t, name, sizeof name)) != NULL;) {
    const struct Test* test = find_test(name);
    if (test == NULL) fail("there is no test '%s'", name);
    for (const char* k = argv[2]; (k = next_name(k, name, sizeof name)) != NULL;) {
      const enum Kind kind = find_kind(name);
      for (const char* s = argv[3]; (s = next_name(s, name, sizeof name)) != NULL;) {
        const size_t bytes = strtoull(name, NULL, 10);
        if (bytes > INT32_MAX) fail("%zu bytes are more than an MPI call takes", bytes);
        measure_size(test, kind, bytes, cache_bytes, budget_us);
      }
    }
  }
  MPI_Finalize();
  return 0;
}
