// NAS IS: ten rankings of integers by value, distributed over the ranks: bucket counts, an
// all-reduce, an all-to-all of the keys, and a count of each value.
//
// Verified as the rules want: after each ranking the ranks of five keys, and at the end the whole
// sorted sequence, across the ranks too. The five positions and ranks of each class are the
// benchmark's; each changes by a known step from one ranking to the next.
#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/messages/mpi/common.h"
#include "bench/messages/mpi/nas.h"

enum { RANKINGS = 10, TESTED = 5, BUCKETS = 1024 };

// The rank of tested key i after ranking t is rank[i] + slope[i] * (t - origin[i]).
struct Class {
  char name;
  int keys_log2, values_log2;
  long index[TESTED], rank[TESTED];
  int slope[TESTED], origin[TESTED];
};
static const struct Class classes[] = {{'S',
                                        16,
                                        11,
                                        {48427, 17148, 23627, 62548, 4431},
                                        {0, 18, 346, 64917, 65463},
                                        {1, 1, 1, -1, -1},
                                        {0, 0, 0, 0, 0}},
                                       {'W',
                                        20,
                                        16,
                                        {357773, 934767, 875723, 898999, 404505},
                                        {1249, 11698, 1039987, 1043896, 1048018},
                                        {1, 1, -1, -1, -1},
                                        {2, 2, 0, 0, 0}},
                                       {'A',
                                        23,
                                        19,
                                        {2112377, 662041, 5336171, 3642833, 4250760},
                                        {104, 17523, 123928, 8288932, 8388264},
                                        {1, 1, 1, -1, -1},
                                        {1, 1, 1, 1, 1}},
                                       {'B',
                                        25,
                                        21,
                                        {41869, 812306, 5102857, 18232239, 26860214},
                                        {33422937, 10244, 59149, 33135281, 99},
                                        {-1, 1, 1, -1, 1},
                                        {0, 0, 0, 0, 0}},
                                       {'C',
                                        27,
                                        23,
                                        {44172927, 72999161, 74326391, 129606274, 21736814},
                                        {61147, 882988, 266290, 133997595, 133525895},
                                        {1, 1, 1, -1, -1},
                                        {0, 0, 0, 0, 0}}};

struct Sort {
  const struct Class* class;
  int rank, ranks;
  long all_keys, own_keys, first_key;  // first_key: position of the first own one among all
  int *keys, *sorted_by_bucket, *received;
  long room;                // of `received`
  long received_count;      // after a ranking
  int first_value, values;  // the values that are counted here
  long before;              // how many keys lie on lower ranks
  int* count;               // of each own value; then how many keys here are below it
  int value_shift;          // value >> value_shift is its bucket
  int tested_keys[TESTED];
};

static const struct Class* find_class(char name) {
  for (unsigned i = 0; i < sizeof classes / sizeof classes[0]; i++) {
    if (classes[i].name == name) return &classes[i];
  }
  fail("there is no class %c of IS; use S, W, A, B or C", name);
}

// Each key is a sum of four random numbers, scaled to the values.
static void make_keys(struct Sort* sort) {
  const double scale = (double)(1 << sort->class->values_log2) / 4;
  struct Random random = random_after(4 * (uint64_t)sort->first_key);
  for (long i = 0; i < sort->own_keys; i++) {
    double sum = next_random(&random);
    for (int k = 1; k < 4; k++) sum += next_random(&random);
    sort->keys[i] = (int)(scale * sum);
  }
}

static void set_up(struct Sort* sort, const struct Run* run) {
  sort->class = find_class(run->class_name);
  sort->rank = run->rank;
  sort->ranks = run->ranks;
  sort->all_keys = 1L << sort->class->keys_log2;
  sort->own_keys = sort->all_keys / run->ranks;
  sort->first_key = sort->own_keys * run->rank;
  const int buckets_log2 = 10;
  sort->value_shift = sort->class->values_log2 - buckets_log2;
  // Buckets are not split, so a rank may get somewhat more than its share.
  sort->room = sort->own_keys * 3 / 2 + sort->all_keys / 64;
  if (sort->room > sort->all_keys) sort->room = sort->all_keys;
  sort->keys = allocate((size_t)sort->own_keys * sizeof(int));
  sort->sorted_by_bucket = allocate((size_t)sort->own_keys * sizeof(int));
  sort->received = allocate((size_t)sort->room * sizeof(int));
  sort->count = allocate(((size_t)1 << sort->class->values_log2) * sizeof(int));
  make_keys(sort);
}

// ---- one ranking -------------------------------------------------------------------------------

// The rules change two keys before ranking t, so that no ranking repeats the one before.
static void change_keys(struct Sort* sort, int t) {
  const long low = t - sort->first_key, high = t + RANKINGS - sort->first_key;
  if (low >= 0 && low < sort->own_keys) sort->keys[low] = t;
  if (high >= 0 && high < sort->own_keys) sort->keys[high] = (1 << sort->class->values_log2) - t;
}

// The positions of the tested keys are known; their values travel to all ranks behind the counts.
static void count_buckets(struct Sort* sort, int* own, int* all) {
  memset(own, 0, (BUCKETS + TESTED) * sizeof *own);
  for (long i = 0; i < sort->own_keys; i++) own[sort->keys[i] >> sort->value_shift]++;
  for (int i = 0; i < TESTED; i++) {
    const long at = sort->class->index[i] - sort->first_key;
    if (at >= 0 && at < sort->own_keys) own[BUCKETS + i] = sort->keys[at];
  }
  MPI_Allreduce(own, all, BUCKETS + TESTED, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  memcpy(sort->tested_keys, all + BUCKETS, sizeof sort->tested_keys);
}

// Each rank gets neighbouring buckets until it has its share: end[r] is the first bucket of rank
// r+1.
static void share_out(struct Sort* sort, const int* all, int* end) {
  long given = 0;
  int bucket = 0;
  for (int r = 0; r < sort->ranks; r++) {
    const long share = sort->all_keys * (r + 1) / sort->ranks;
    const long before = given;
    const int first = bucket;
    while (bucket < BUCKETS && (r == sort->ranks - 1 || given < share)) given += all[bucket++];
    end[r] = bucket;
    if (r != sort->rank) continue;
    sort->before = before;
    sort->received_count = given - before;
    sort->first_value = first << sort->value_shift;
    sort->values = (bucket - first) << sort->value_shift;
  }
  if (sort->received_count > sort->room) fail("the keys are spread unevenly; this is a bug");
}

static void exchange_keys(struct Sort* sort, const int* own, const int* end) {
  int* plan = allocate(4 * (size_t)sort->ranks * sizeof(int));
  int *send = plan, *send_at = plan + sort->ranks, *get = plan + 2 * sort->ranks,
      *get_at = plan + 3 * sort->ranks;
  int at[BUCKETS], bucket = 0, next = 0;
  for (int r = 0; r < sort->ranks; r++) {
    send_at[r] = next;
    for (; bucket < end[r]; bucket++) {
      at[bucket] = next;
      next += own[bucket];
    }
    send[r] = next - send_at[r];
  }
  for (long i = 0; i < sort->own_keys; i++)
    sort->sorted_by_bucket[at[sort->keys[i] >> sort->value_shift]++] = sort->keys[i];
  MPI_Alltoall(send, 1, MPI_INT, get, 1, MPI_INT, MPI_COMM_WORLD);
  for (int r = 1; r < sort->ranks; r++) get_at[r] = get_at[r - 1] + get[r - 1];
  MPI_Alltoallv(sort->sorted_by_bucket, send, send_at, MPI_INT, sort->received, get, get_at,
                MPI_INT, MPI_COMM_WORLD);
  free(plan);
}

static void count_values(struct Sort* sort) {
  memset(sort->count, 0, (size_t)sort->values * sizeof *sort->count);
  for (long i = 0; i < sort->received_count; i++)
    sort->count[sort->received[i] - sort->first_value]++;
  int below = 0;
  for (int v = 0; v < sort->values; v++) {
    const int here = sort->count[v];
    sort->count[v] = below;
    below += here;
  }
}

static void check_tested(const struct Sort* sort, int t) {
  for (int i = 0; i < TESTED; i++) {
    const int value = sort->tested_keys[i] - sort->first_value;
    if (value < 0 || value >= sort->values) continue;
    const long found = sort->before + sort->count[value];
    const struct Class* class = sort->class;
    const long wanted = class->rank[i] + class->slope[i] * (t - class->origin[i]);
    if (found != wanted)
      fail("IS class %c, ranking %d: key %d has rank %ld instead of %ld", class->name, t, i, found,
           wanted);
  }
}

static void rank_keys(struct Sort* sort, int t) {
  int own[BUCKETS + TESTED], all[BUCKETS + TESTED];
  int* end = allocate((size_t)sort->ranks * sizeof(int));
  change_keys(sort, t);
  count_buckets(sort, own, all);
  share_out(sort, all, end);
  exchange_keys(sort, own, end);
  count_values(sort);
  check_tested(sort, t);
  free(end);
}

// ---- full verification -------------------------------------------------------------------------

// A digest that does not depend on the order of the keys.
static uint64_t digest(const int* keys, long count) {
  uint64_t sum = 0;
  for (long i = 0; i < count; i++) sum += ((uint64_t)keys[i] + 1) * ((uint64_t)keys[i] + 1);
  return sum;
}

// Puts every key where its rank says; then all must be in order. Also checks, beyond the rules,
// that they are the keys that were sent.
static void check_all(struct Sort* sort) {
  int* sorted = allocate((size_t)sort->received_count * sizeof(int));
  bool* taken = allocate((size_t)sort->received_count);
  for (long i = 0; i < sort->received_count; i++) {
    const int at = sort->count[sort->received[i] - sort->first_value]++;
    if (at >= sort->received_count || taken[at])
      fail("IS: two keys have rank %ld", sort->before + at);
    taken[at] = true;
    sorted[at] = sort->received[i];
  }
  for (long i = 1; i < sort->received_count; i++) {
    if (sorted[i - 1] > sorted[i]) fail("IS: the keys are not sorted at %ld", sort->before + i);
  }
  const int left = sort->rank > 0 ? sort->rank - 1 : MPI_PROC_NULL;
  const int right = sort->rank < sort->ranks - 1 ? sort->rank + 1 : MPI_PROC_NULL;
  // A rank without keys passes on what lies below it.
  int below = INT_MIN, last;
  MPI_Recv(&below, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (sort->received_count > 0 && below > sorted[0])
    fail("IS: the keys of rank %d begin below those before it", sort->rank);
  last = sort->received_count > 0 ? sorted[sort->received_count - 1] : below;
  MPI_Send(&last, 1, MPI_INT, right, 0, MPI_COMM_WORLD);
  const uint64_t own[2] = {digest(sort->keys, sort->own_keys),
                           digest(sort->received, sort->received_count)};
  uint64_t all[2];
  MPI_Allreduce(own, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (all[0] != all[1]) fail("IS: the keys that came back are not those that were sent");
  free(sorted);
  free(taken);
}

int main(int argc, char** argv) {
  const struct Run run = begin_run(&argc, &argv);
  struct Sort sort = {0};
  set_up(&sort, &run);
  rank_keys(&sort, 1);  // the ranking that the rules leave untimed
  const struct Timing timing = begin_timing();
  for (int t = 1; t <= RANKINGS; t++) rank_keys(&sort, t);
  const struct Told told = end_timing(timing);
  check_all(&sort);
  end_run(&run, "is", told, (double)RANKINGS * (double)sort.all_keys);
  free(sort.keys);
  free(sort.sorted_by_bucket);
  free(sort.received);
  free(sort.count);
  return 0;
}
