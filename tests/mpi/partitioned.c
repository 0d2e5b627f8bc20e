// Partitioned messages (MPI 4): parts marked ready in any order, other cuts on the receiver's side.
#include "harness.h"

#include <stdlib.h>
#include <string.h>

// The runner compiles with HAVE_PARTITIONED where the MPI has MPI_Psend_init.
#ifdef HAVE_PARTITIONED

enum { parts = 12, rounds = 2 };

static const int part_sizes[] = {1, 100, 5000, 100000};
enum { size_count = sizeof part_sizes / sizeof part_sizes[0] };

enum { one_by_one, backwards, by_range, by_list, way_count };

static void mark_ready(MPI_Request* request, int way) {
  // Not const: Open MPI 5 declares the list so.
  int odd[] = {1, 3, 5, 7, 9, 11};
  int even[] = {10, 8, 6, 4, 2, 0};
  switch (way) {
    case one_by_one:
      for (int i = 0; i < parts; i++) MPI_Pready(i, *request);
      break;
    case backwards:
      for (int i = parts - 1; i >= 0; i--) MPI_Pready(i, *request);
      break;
    case by_range:
      MPI_Pready_range(parts / 2, parts - 1, *request);
      MPI_Pready_range(0, parts / 2 - 1, *request);
      break;
    default: MPI_Pready_list(6, odd, *request); MPI_Pready_list(6, even, *request);
  }
}

// The receiver sees `in_parts` parts. If asked to, it polls for each, and may read it once it has
// arrived.
static void exchange(int way, int bytes_each, int in_parts, bool polls) {
  const size_t total = (size_t)parts * (size_t)bytes_each;
  const int bytes_each_in = parts / in_parts * bytes_each;
  unsigned char* out = allocate(total);
  unsigned char* in = allocate(total);
  unsigned char* wanted = allocate(total);
  MPI_Request send;
  MPI_Request receive;
  MPI_Psend_init(out, parts, bytes_each, MPI_BYTE, right_of_me(), 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &send);
  MPI_Precv_init(in, in_parts, bytes_each_in, MPI_BYTE, left_of_me(), 1, MPI_COMM_WORLD,
                 MPI_INFO_NULL, &receive);
  for (int round = 0; round < rounds; round++) {
    memset(in, 0, total);
    fill(wanted, total, seed_of(way, left_of_me(), bytes_each, round));
    MPI_Start(&receive);
    MPI_Start(&send);
    fill(out, total, seed_of(way, my_rank, bytes_each, round));
    mark_ready(&send, way);
    for (int i = in_parts - 1; i >= 0 && polls; i--) {
      int arrived = 0;
      while (!arrived) {
        MPI_Parrived(receive, i, &arrived);
        yield_core();
      }
      const size_t place = (size_t)i * (size_t)bytes_each_in;
      require(memcmp(in + place, wanted + place, (size_t)bytes_each_in) == 0,
              "round %d: part %d of %d, %d bytes, arrived wrong", round, i, in_parts,
              bytes_each_in);
    }
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    expect(in, total, seed_of(way, left_of_me(), bytes_each, round), "the whole of the parts");
  }
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
  free(out);
  free(in);
  free(wanted);
}

static void test_ways(void) {
  for (int way = 0; way < way_count; way++) {
    for (int i = 0; i < size_count; i++) exchange(way, part_sizes[i], parts, true);
  }
}

static void cut_otherwise(bool polls) {
  const int cuts[] = {1, 4};
  for (int c = 0; c < 2; c++) {
    for (int i = 0; i < size_count; i++) exchange(one_by_one, part_sizes[i], cuts[c], polls);
  }
}

static void test_other_cuts(void) {
  cut_otherwise(false);
}

// Open MPI 5 says too early, at times, that a part has arrived, also natively: a case of its own.
static void test_polled_other_cuts(void) {
  cut_otherwise(true);
}

// Ordinary messages with the same tag pass beside a partitioned one.
static void test_beside_messages(void) {
  unsigned char out[parts * 64];
  unsigned char in[parts * 64];
  MPI_Request requests[2];
  MPI_Psend_init(out, parts, 64, MPI_BYTE, right_of_me(), 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &requests[0]);
  MPI_Precv_init(in, parts, 64, MPI_BYTE, left_of_me(), 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &requests[1]);
  MPI_Startall(2, requests);
  fill(out, sizeof out, seed_of(99, my_rank, 0, 0));
  for (int i = 0; i < parts; i++) {
    int value = -1;
    MPI_Pready(i, requests[0]);
    MPI_Sendrecv(&i, 1, MPI_INT, right_of_me(), 1, &value, 1, MPI_INT, left_of_me(), 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    require(value == i, "message %d beside parts is %d", i, value);
  }
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  expect(in, sizeof in, seed_of(99, left_of_me(), 0, 0), "parts beside messages");
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

#else

static void test_ways(void) {
  skip("this MPI has no partitioned messages");
}
static void test_other_cuts(void) {
  skip("this MPI has no partitioned messages");
}
static void test_polled_other_cuts(void) {
  skip("this MPI has no partitioned messages");
}
static void test_beside_messages(void) {
  skip("this MPI has no partitioned messages");
}

#endif

int main(int argc, char** argv) {
  const TestCase cases[] = {
      {"ways", test_ways},
      {"other_cuts", test_other_cuts},
      {"polled_other_cuts", test_polled_other_cuts},
      {"beside_messages", test_beside_messages},
  };
  return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, sizeof cases / sizeof cases[0]);
}
