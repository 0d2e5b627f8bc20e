// What it costs the receiving rank to match one message of 8 bytes among many of distinct tags.
// Usage: matching ENTRIES CPUS BUDGET_US WHEN
//
// ENTRIES, separated by commas: so many receives are posted, or so many messages kept, all the
// time. BUDGET_US: how long to measure each figure. WHEN: pin "early" (before MPI_Init) or "late".
//
// Output, a line for each figure: row TEST ENTRIES MEDIAN_NS LEAST_NS. Test posted: MPI_Wait for
// one of the receives, once its message has come, which was asked for by rank 1 and given some time
// to arrive; unexpected: MPI_Recv of one of the messages that were kept. The tags come in random
// order. The bytes of every message are checked.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/messages/mpi/common.h"

enum { MOST_SAMPLES = 20000, LEAST_SAMPLES = 50, WARM_SAMPLES = 50, ORDER_TAG = 30000 };
static const double arrival_us = 5;

static uint64_t state = 18;
static uint64_t next_random(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

// What rank 1 asks of rank 0: messages with the tags [first, first + count), then, if it wants to
// know that they have come, one with ORDER_TAG.
struct Order {
  uint64_t first, count, told, seal;
};

struct Crowd {
  int entries;
  uint64_t* stamps;  // what was received, of each tag
  uint64_t* turns;   // how often each tag was sent
  MPI_Request* requests;
};

static uint64_t stamp_of(uint64_t tag, uint64_t turn) {
  return (tag << 32 | turn) * 0x9e3779b97f4a7c15u;
}

static uint64_t seal_of(const struct Order* what) {
  return stamp_of(what->first, what->count) ^ what->told;
}

static void order(uint64_t first, uint64_t count, uint64_t told) {
  struct Order what = {first, count, told, 0};
  what.seal = seal_of(&what);
  MPI_Send(&what, sizeof what, MPI_BYTE, 0, ORDER_TAG, MPI_COMM_WORLD);
  if (told) MPI_Recv(NULL, 0, MPI_BYTE, 0, ORDER_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void serve(struct Crowd* crowd) {
  for (;;) {
    struct Order what;
    MPI_Recv(&what, sizeof what, MPI_BYTE, 1, ORDER_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (what.seal != seal_of(&what)) fail("an order for messages has wrong bytes");
    if (what.count == 0) return;
    for (uint64_t tag = what.first; tag < what.first + what.count; tag++) {
      const uint64_t stamp = stamp_of(tag, crowd->turns[tag]++);
      MPI_Send(&stamp, sizeof stamp, MPI_BYTE, 1, (int)tag, MPI_COMM_WORLD);
    }
    if (what.told) MPI_Send(NULL, 0, MPI_BYTE, 1, ORDER_TAG, MPI_COMM_WORLD);
  }
}

static void check(struct Crowd* crowd, const char* test, uint64_t tag) {
  if (crowd->stamps[tag] != stamp_of(tag, crowd->turns[tag]++))
    fail("%s among %d: the message of tag %llu has wrong bytes", test, crowd->entries,
         (unsigned long long)tag);
  crowd->stamps[tag] = 0;
}

static void post(struct Crowd* crowd, uint64_t tag) {
  MPI_Irecv(&crowd->stamps[tag], sizeof(uint64_t), MPI_BYTE, 0, (int)tag, MPI_COMM_WORLD,
            &crowd->requests[tag]);
}

static double match_posted(struct Crowd* crowd, uint64_t tag) {
  order(tag, 1, 0);
  for (const double begin = now_us(); now_us() - begin < arrival_us;) {
  }
  const double before = now_us();
  MPI_Wait(&crowd->requests[tag], MPI_STATUS_IGNORE);
  const double took = now_us() - before;
  check(crowd, "posted", tag);
  post(crowd, tag);
  return took;
}

static void receive(struct Crowd* crowd, uint64_t tag) {
  MPI_Recv(&crowd->stamps[tag], sizeof(uint64_t), MPI_BYTE, 0, (int)tag, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
}

static double match_unexpected(struct Crowd* crowd, uint64_t tag) {
  const double before = now_us();
  receive(crowd, tag);
  const double took = now_us() - before;
  check(crowd, "unexpected", tag);
  order(tag, 1, 1);
  return took;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(struct Crowd* crowd, int posted, double budget_us) {
  static double times[MOST_SAMPLES];
  const uint64_t entries = (uint64_t)crowd->entries;
  if (posted) {
    for (uint64_t tag = 0; tag < entries; tag++) post(crowd, tag);
  } else {
    order(0, entries, 1);
  }
  int samples = -WARM_SAMPLES;
  for (const double begin = now_us();
       samples < MOST_SAMPLES && (samples < LEAST_SAMPLES || now_us() - begin < budget_us);
       samples++) {
    const uint64_t tag = next_random() % entries;
    const double took = posted ? match_posted(crowd, tag) : match_unexpected(crowd, tag);
    if (samples >= 0) times[samples] = took;
  }
  if (posted) {
    order(0, entries, 0);
    MPI_Waitall(crowd->entries, crowd->requests, MPI_STATUSES_IGNORE);
  } else {
    for (uint64_t tag = entries; tag-- > 0;) receive(crowd, tag);
  }
  for (uint64_t tag = 0; tag < entries; tag++) check(crowd, "the last messages", tag);
  order(0, 0, 0);
  qsort(times, (size_t)samples, sizeof *times, compare);
  printf("row %s %d %.1f %.1f\n", posted ? "posted" : "unexpected", crowd->entries,
         times[samples / 2] * 1e3, times[0] * 1e3);
  fflush(stdout);
}

static void run(int rank, int entries, int posted, double budget_us) {
  const size_t count = (size_t)entries;
  struct Crowd crowd = {entries, calloc(count, sizeof(uint64_t)), calloc(count, sizeof(uint64_t)),
                        calloc(count, sizeof(MPI_Request))};
  if (crowd.stamps == NULL || crowd.turns == NULL || crowd.requests == NULL)
    fail("no memory for %d receives", entries);
  if (rank == 0) serve(&crowd);
  if (rank == 1) measure(&crowd, posted, budget_us);
  free(crowd.stamps);
  free(crowd.turns);
  free(crowd.requests);
}

int main(int argc, char** argv) {
  if (argc != 5) fail("usage: matching ENTRIES CPUS BUDGET_US WHEN");
  const int early = strcmp(argv[4], "early") == 0;
  if (early) pin_to(argv[2]);
  MPI_Init(&argc, &argv);
  if (!early) pin_to(argv[2]);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) fail("two ranks are needed");
  for (int posted = 1; posted >= 0; posted--) {
    for (char* at = argv[1]; *at != 0;) {
      char* end;
      const long entries = strtol(at, &end, 10);
      if (end == at || entries < 1 || entries > ORDER_TAG)
        fail("'%s' is no list of numbers from 1 to %d", argv[1], ORDER_TAG);
      run(rank, (int)entries, posted, atof(argv[3]));
      at = *end == ',' ? end + 1 : end;
    }
  }
  MPI_Finalize();
  return 0;
}
