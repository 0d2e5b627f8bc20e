// pingpong, pingping, exchange, alltoall, bcast, allreduce, rate, bandwidth.
#include "bench/messages/mpi/exchange.h"

#include <mpi.h>
#include <stdint.h>
#include <string.h>

static void produce(const struct Side* side, struct Areas areas) {
  if (side->produce != NULL) side->produce(side->context, areas);
}
static void consume(const struct Side* side, struct Areas areas) {
  if (side->consume != NULL) side->consume(side->context, areas);
}

static void send(const struct Side* side, const unsigned char* at, int to, int tag) {
  MPI_Send(at, (int)side->bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD);
}
static void receive(const struct Side* side, unsigned char* at, int from, int tag) {
  MPI_Recv(at, (int)side->bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void start_send(const struct Side* side, const unsigned char* at, int to, int tag,
                       MPI_Request* request) {
  MPI_Isend(at, (int)side->bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, request);
}

static void run_pingpong(const struct Side* side, struct Areas areas) {
  const int peer = 1 - side->rank;
  if (side->rank == 0) {
    produce(side, areas);
    send(side, areas.out, peer, 0);
  }
  receive(side, areas.in, peer, 0);
  consume(side, areas);
  if (side->rank == 1) {
    produce(side, areas);
    send(side, areas.out, peer, 0);
  }
}

static void run_pingping(const struct Side* side, struct Areas areas) {
  const int peer = 1 - side->rank;
  MPI_Request request;
  produce(side, areas);
  start_send(side, areas.out, peer, 0, &request);
  receive(side, areas.in, peer, 0);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  consume(side, areas);
}

// Piece 0 goes left and piece 1 right; what is right for a neighbour is this rank.
static void run_exchange(const struct Side* side, struct Areas areas) {
  const int left = (side->rank + side->ranks - 1) % side->ranks;
  const int right = (side->rank + 1) % side->ranks;
  const int leftwards = 0, rightwards = 1;
  MPI_Request requests[2];
  produce(side, areas);
  start_send(side, areas.out, left, leftwards, &requests[0]);
  start_send(side, areas.out + side->bytes, right, rightwards, &requests[1]);
  receive(side, areas.in, left, rightwards);
  receive(side, areas.in + side->bytes, right, leftwards);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  consume(side, areas);
}

static void run_alltoall(const struct Side* side, struct Areas areas) {
  const int bytes = (int)side->bytes;
  produce(side, areas);
  MPI_Alltoall(areas.out, bytes, MPI_BYTE, areas.in, bytes, MPI_BYTE, MPI_COMM_WORLD);
  consume(side, areas);
}

static void run_bcast(const struct Side* side, struct Areas areas) {
  produce(side, areas);
  MPI_Bcast(side->rank == 0 ? areas.out : areas.in, (int)side->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  consume(side, areas);
}

static void run_allreduce(const struct Side* side, struct Areas areas) {
  produce(side, areas);
  MPI_Allreduce(areas.out, areas.in, (int)(side->bytes / sizeof(uint64_t)), MPI_UINT64_T, MPI_SUM,
                MPI_COMM_WORLD);
  consume(side, areas);
}

// A window of messages, then an empty answer.
static void run_window(const struct Side* side, struct Areas areas, int window) {
  const int peer = 1 - side->rank;
  MPI_Request requests[RATE_WINDOW];
  if (side->rank == 0) {
    produce(side, areas);
    for (int i = 0; i < window; i++)
      start_send(side, areas.out + (size_t)i * side->bytes, peer, 0, &requests[i]);
  } else {
    for (int i = 0; i < window; i++)
      MPI_Irecv(areas.in + (size_t)i * side->bytes, (int)side->bytes, MPI_BYTE, peer, 0,
                MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
  if (side->rank == 0) {
    MPI_Recv(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    consume(side, areas);
    MPI_Send(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
  }
}
static void run_rate(const struct Side* side, struct Areas areas) {
  run_window(side, areas, RATE_WINDOW);
}
static void run_bandwidth(const struct Side* side, struct Areas areas) {
  run_window(side, areas, BANDWIDTH_WINDOW);
}

// Ranks beyond the pair have nothing to send.
static int one_of_pair(int rank, int ranks) {
  (void)ranks;
  return rank < 2;
}
static int two(int rank, int ranks) {
  (void)rank;
  (void)ranks;
  return 2;
}
static int one_each(int rank, int ranks) {
  (void)rank;
  return ranks;
}
static int one(int rank, int ranks) {
  (void)rank;
  (void)ranks;
  return 1;
}
static int one_from_root(int rank, int ranks) {
  (void)ranks;
  return rank == 0;
}
static int one_to_others(int rank, int ranks) {
  (void)ranks;
  return rank != 0;
}
static int rate_out(int rank, int ranks) {
  (void)ranks;
  return rank == 0 ? RATE_WINDOW : 0;
}
static int rate_in(int rank, int ranks) {
  (void)ranks;
  return rank == 1 ? RATE_WINDOW : 0;
}
static int bandwidth_out(int rank, int ranks) {
  (void)ranks;
  return rank == 0 ? BANDWIDTH_WINDOW : 0;
}
static int bandwidth_in(int rank, int ranks) {
  (void)ranks;
  return rank == 1 ? BANDWIDTH_WINDOW : 0;
}

static void from_peer(int rank, int ranks, int piece, int* from, int* from_piece) {
  (void)ranks;
  *from = 1 - rank;
  *from_piece = piece;
}
static void from_neighbour(int rank, int ranks, int piece, int* from, int* from_piece) {
  *from = piece == 0 ? (rank + ranks - 1) % ranks : (rank + 1) % ranks;
  *from_piece = 1 - piece;
}
static void from_each(int rank, int ranks, int piece, int* from, int* from_piece) {
  (void)ranks;
  *from = piece;
  *from_piece = rank;
}

static void from_root(int rank, int ranks, int piece, int* from, int* from_piece) {
  (void)rank;
  (void)ranks;
  *from = 0;
  *from_piece = piece;
}
static void from_all(int rank, int ranks, int piece, int* from, int* from_piece) {
  (void)rank;
  (void)ranks;
  *from = SUM_OF_ALL;
  *from_piece = piece;
}

const struct Test tests[] = {
    {"pingpong", true, true, 2, 1, one_of_pair, one_of_pair, from_peer, run_pingpong},
    {"pingping", true, false, 1, 1, one_of_pair, one_of_pair, from_peer, run_pingping},
    {"exchange", false, false, 1, 4, two, two, from_neighbour, run_exchange},
    {"alltoall", false, false, 1, 0, one_each, one_each, from_each, run_alltoall},
    {"bcast", false, false, 1, 1, one_from_root, one_to_others, from_root, run_bcast},
    {"allreduce", false, false, 1, 1, one, one, from_all, run_allreduce},
    {"rate", true, true, RATE_WINDOW, 1, rate_out, rate_in, from_peer, run_rate},
    {"bandwidth", true, true, BANDWIDTH_WINDOW, 1, bandwidth_out, bandwidth_in, from_peer,
     run_bandwidth}};
const int tests_count = sizeof tests / sizeof tests[0];

const struct Test* find_test(const char* name) {
  for (int i = 0; i < tests_count; i++) {
    if (strcmp(tests[i].name, name) == 0) return &tests[i];
  }
  return NULL;
}

double moved_messages(const struct Test* test, int ranks) {
  return test->moved > 0 ? test->moved : ranks - 1;
}
