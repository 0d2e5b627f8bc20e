// Communicators of every making, neighbourhood collectives, intercommunicators, persistent
// collectives.
#include "harness.h"

#include <stdlib.h>
#include <string.h>

// All collectives and messages of a communicator stay inside it.
static void exercise(MPI_Comm comm) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  require(sum == size * (size - 1) / 2, "the sum over %d ranks is %d", size, sum);
  enum { bytes = 30000 };
  unsigned char* out = allocate(bytes);
  unsigned char* in = allocate(bytes);
  const int left = (rank + size - 1) % size;
  fill(out, bytes, seed_of(1, rank, size, 0));
  MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % size, 1, in, bytes, MPI_BYTE, left, 1, comm,
               MPI_STATUS_IGNORE);
  expect(in, bytes, seed_of(1, left, size, 0), "within a communicator");
  free(out);
  free(in);
}

static void test_dup_and_split(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  exercise(comm);
  MPI_Comm_free(&comm);
  MPI_Request request;
  MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  exercise(comm);
  MPI_Comm_free(&comm);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm);
  exercise(comm);
  MPI_Comm_free(&comm);
  MPI_Comm_split(MPI_COMM_WORLD, my_rank % 2, -my_rank, &comm);
  int rank = -1;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  require(rank == size - 1 - my_rank / 2, "split: rank %d of %d", rank, size);
  exercise(comm);
  MPI_Comm nested;
  MPI_Comm_split(comm, rank / 2, rank, &nested);
  exercise(nested);
  MPI_Comm_free(&nested);
  MPI_Comm_free(&comm);
  MPI_Comm_split(MPI_COMM_WORLD, my_rank == 0 ? MPI_UNDEFINED : 1, 0, &comm);
  require((comm == MPI_COMM_NULL) == (my_rank == 0), "split: rank 0 has no colour");
  if (comm != MPI_COMM_NULL) {
    exercise(comm);
    MPI_Comm_free(&comm);
  }
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
  exercise(comm);
  MPI_Comm_free(&comm);
}

// Many alive at once: what identifies them must not run together.
static void test_many_communicators(void) {
  enum { count = 40 };
  MPI_Comm comms[count];
  for (int i = 0; i < count; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  MPI_Request requests[2 * count];
  int in[count];
  int out[count];
  for (int i = 0; i < count; i++) {
    MPI_Irecv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], &requests[i]);
  }
  for (int i = count - 1; i >= 0; i--) {
    out[i] = my_rank * 100 + i;
    MPI_Isend(&out[i], 1, MPI_INT, right_of_me(), 1, comms[i], &requests[count + i]);
  }
  MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < count; i++) {
    require(in[i] == left_of_me() * 100 + i, "communicator %d received %d", i, in[i]);
    MPI_Comm_free(&comms[i]);
  }
}

static void test_groups(void) {
  MPI_Group world;
  MPI_Group some;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int ranges[1][3] = {{rank_count - 1, 0, -2}};
  MPI_Group_range_incl(world, 1, ranges, &some);
  int rank = MPI_UNDEFINED;
  MPI_Group_rank(some, &rank);
  if (rank != MPI_UNDEFINED) {
    MPI_Comm comm;
    MPI_Comm_create_group(MPI_COMM_WORLD, some, 17, &comm);
    exercise(comm);
    MPI_Comm_free(&comm);
  }
  MPI_Comm comm;
  MPI_Comm_create(MPI_COMM_WORLD, some, &comm);
  require((comm != MPI_COMM_NULL) == (rank != MPI_UNDEFINED), "created for the wrong ranks");
  if (comm != MPI_COMM_NULL) {
    exercise(comm);
    MPI_Comm_free(&comm);
  }
  MPI_Group_free(&some);
  MPI_Group_free(&world);
}

enum { part = 500 };

static int element(int from, int to, int index) {
  return from * 1009 + to * 13 + index;
}

// Sends a part of its own to each neighbour and one part to all, by each neighbourhood collective.
static void exchange_with_neighbours(MPI_Comm graph, const int* sources, int in_count,
                                     const int* targets, int out_count) {
  int* out = allocate((size_t)(out_count * part) * sizeof(int));
  int* in = allocate((size_t)(in_count * part) * sizeof(int));
  int* ones = allocate((size_t)(4 * (in_count + out_count)) * sizeof(int));
  MPI_Aint* byte_places = allocate((size_t)(in_count + out_count) * sizeof *byte_places);
  MPI_Datatype* types = allocate((size_t)(in_count + out_count) * sizeof *types);
  int* places = ones + in_count + out_count;
  for (int i = 0; i < in_count + out_count; i++) {
    ones[i] = part;
    places[i] = (i < in_count ? i : i - in_count) * part;
    byte_places[i] = (MPI_Aint)places[i] * (MPI_Aint)sizeof(int);
    types[i] = MPI_INT;
  }
  for (int way = 0; way < 8; way++) {
    MPI_Request request = MPI_REQUEST_NULL;
    const bool same_for_all = way < 4;
    for (int i = 0; i < out_count; i++) {
      for (int k = 0; k < part; k++) {
        out[i * part + k] = element(my_rank, same_for_all ? 0 : targets[i], k);
      }
    }
    memset(in, 0xff, (size_t)(in_count * part) * sizeof(int));
    switch (way) {
      case 0: MPI_Neighbor_allgather(out, part, MPI_INT, in, part, MPI_INT, graph); break;
      case 1:
        MPI_Ineighbor_allgather(out, part, MPI_INT, in, part, MPI_INT, graph, &request);
        break;
      case 2: MPI_Neighbor_allgatherv(out, part, MPI_INT, in, ones, places, MPI_INT, graph); break;
      case 3:
        MPI_Ineighbor_allgatherv(out, part, MPI_INT, in, ones, places, MPI_INT, graph, &request);
        break;
      case 4: MPI_Neighbor_alltoall(out, part, MPI_INT, in, part, MPI_INT, graph); break;
      case 5: MPI_Ineighbor_alltoall(out, part, MPI_INT, in, part, MPI_INT, graph, &request); break;
      case 6:
        MPI_Neighbor_alltoallv(out, ones, places + in_count, MPI_INT, in, ones, places, MPI_INT,
                               graph);
        break;
      default:
        MPI_Neighbor_alltoallw(out, ones, byte_places + in_count, types, in, ones, byte_places,
                               types, graph);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < in_count; i++) {
      for (int k = 0; k < part && sources[i] >= 0; k++) {
        const int wanted = element(sources[i], same_for_all ? 0 : my_rank, k);
        require(in[i * part + k] == wanted, "way %d: neighbour %d sent %d, not %d", way, sources[i],
                in[i * part + k], wanted);
      }
    }
  }
  free(out);
  free(in);
  free(ones);
  free(byte_places);
  free(types);
}

static void test_cartesian(void) {
  int extents[2] = {0, 0};
  const int periods[2] = {0, 0};
  MPI_Dims_create(rank_count, 2, extents);
  MPI_Comm grid;
  MPI_Cart_create(MPI_COMM_WORLD, 2, extents, periods, 0, &grid);
  int neighbours[4];
  for (int d = 0; d < 2; d++) {
    MPI_Cart_shift(grid, d, 1, &neighbours[2 * d], &neighbours[2 * d + 1]);
  }
  exchange_with_neighbours(grid, neighbours, 4, neighbours, 4);
  const int keep[2] = {1, 0};
  MPI_Comm line;
  MPI_Cart_sub(grid, keep, &line);
  exercise(line);
  MPI_Comm_free(&line);
  MPI_Comm_free(&grid);
}

// Each sends to the next two and receives from the two before; then a star around rank 0.
static void test_graphs(void) {
  const int targets[2] = {right_of_me(), (my_rank + 2) % rank_count};
  const int sources[2] = {left_of_me(), (my_rank + rank_count - 2) % rank_count};
  const int weights[2] = {1, 1};
  MPI_Comm graph;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, weights, 2, targets, weights,
                                 MPI_INFO_NULL, 0, &graph);
  exchange_with_neighbours(graph, sources, 2, targets, 2);
  MPI_Comm_free(&graph);
  const int degree = my_rank == 0 ? rank_count - 1 : 1;
  int* others = allocate((size_t)degree * sizeof *others);
  int* ones = allocate((size_t)degree * sizeof *ones);
  for (int i = 0; i < degree; i++) {
    others[i] = my_rank == 0 ? i + 1 : 0;
    ones[i] = 1;
  }
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, others, ones, degree, others, ones,
                                 MPI_INFO_NULL, 0, &graph);
  exchange_with_neighbours(graph, others, degree, others, degree);
  MPI_Comm_free(&graph);
  free(others);
  free(ones);
}

// Even ranks on one side, odd ones on the other.
static void test_intercommunicator(void) {
  MPI_Comm half;
  MPI_Comm inter;
  MPI_Comm_split(MPI_COMM_WORLD, my_rank % 2, my_rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - my_rank % 2, 5, &inter);
  int rank = 0;
  int there = 0;
  MPI_Comm_rank(inter, &rank);
  MPI_Comm_remote_size(inter, &there);
  require(there == (my_rank % 2 == 0 ? rank_count / 2 : (rank_count + 1) / 2), "%d on the far side",
          there);
  for (int r = 0; r < there; r++) {
    MPI_Request request;
    int in = -1;
    MPI_Isend(&my_rank, 1, MPI_INT, r, 3, inter, &request);
    MPI_Status status;
    MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 3, inter, &status);
    require(in % 2 != my_rank % 2 && in / 2 == status.MPI_SOURCE, "from the far side: %d", in);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  int sum = -1;
  int wanted = 0;
  MPI_Allreduce(&my_rank, &sum, 1, MPI_INT, MPI_SUM, inter);
  for (int r = 1 - my_rank % 2; r < rank_count; r += 2) wanted += r;
  require(sum == wanted, "the far side's sum is %d, not %d", sum, wanted);
  int* all = allocate((size_t)there * sizeof *all);
  MPI_Allgather(&my_rank, 1, MPI_INT, all, 1, MPI_INT, inter);
  for (int r = 0; r < there; r++) {
    require(all[r] == 2 * r + 1 - my_rank % 2, "the far side's rank %d sent %d", r, all[r]);
  }
  int value = my_rank == 0 ? 42 : -1;
  const int root = my_rank % 2 == 1 ? 0 : (my_rank == 0 ? MPI_ROOT : MPI_PROC_NULL);
  MPI_Bcast(&value, 1, MPI_INT, root, inter);
  require(my_rank % 2 == 0 || value == 42, "the far side's root sent %d", value);
  MPI_Comm merged;
  MPI_Intercomm_merge(inter, my_rank % 2, &merged);
  exercise(merged);
  free(all);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

// The runner compiles with HAVE_PERSISTENT_COLLECTIVES where the MPI has MPI_Allreduce_init.
#ifdef HAVE_PERSISTENT_COLLECTIVES
enum { elements = 2000, rounds = 4, kinds = 4 };

// The kinds in the set are started together: 1 Allreduce, 2 Allgather, 4 Bcast, 8 Barrier.
static void run_persistent(int set) {
  int* sums = allocate(elements * sizeof(int));
  int* mine = allocate(elements * sizeof(int));
  int* all = allocate((size_t)(elements * rank_count) * sizeof(int));
  int* news = allocate(elements * sizeof(int));
  MPI_Request requests[kinds];
  int count = 0;
  if (set & 1) {
    MPI_Allreduce_init(mine, sums, elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &requests[count++]);
  }
  if (set & 2) {
    MPI_Allgather_init(mine, elements, MPI_INT, all, elements, MPI_INT, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &requests[count++]);
  }
  if (set & 4) {
    MPI_Bcast_init(news, elements, MPI_INT, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[count++]);
  }
  if (set & 8) MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[count++]);
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < elements; i++) {
      mine[i] = element(my_rank, round, i);
      news[i] = my_rank == 1 ? element(1, round, i) : -1;
    }
    MPI_Startall(count, requests);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < elements; i++) {
      int sum = 0;
      for (int r = 0; r < rank_count; r++) {
        sum += element(r, round, i);
        require(!(set & 2) || all[r * elements + i] == element(r, round, i),
                "Allgather_init, round %d, rank %d's element %d", round, r, i);
      }
      require(!(set & 1) || sums[i] == sum, "Allreduce_init, round %d: %d", round, sums[i]);
      require(!(set & 4) || news[i] == element(1, round, i), "Bcast_init, round %d", round);
    }
  }
  for (int k = 0; k < count; k++) MPI_Request_free(&requests[k]);
  free(sums);
  free(mine);
  free(all);
  free(news);
}
#else
static void run_persistent(int set) {
  (void)set;
  skip("this MPI has no persistent collectives");
}
#endif

// Apart, as Intel MPI has faults of its own in some of them.
static void test_persistent_allreduce(void) {
  run_persistent(1);
}
static void test_persistent_allgather(void) {
  run_persistent(2);
}
static void test_persistent_bcast(void) {
  run_persistent(4);
}
static void test_persistent_barrier(void) {
  run_persistent(8);
}
static void test_persistent_overlapped(void) {
  run_persistent(15);
}

int main(int argc, char** argv) {
  const TestCase cases[] = {
      {"dup_and_split", test_dup_and_split},
      {"many_communicators", test_many_communicators},
      {"groups", test_groups},
      {"cartesian", test_cartesian},
      {"graphs", test_graphs},
      {"intercommunicator", test_intercommunicator},
      {"persistent_allreduce", test_persistent_allreduce},
      {"persistent_allgather", test_persistent_allgather},
      {"persistent_bcast", test_persistent_bcast},
      {"persistent_barrier", test_persistent_barrier},

      {"persistent_overlapped", test_persistent_overlapped},
  };
  return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, sizeof cases / sizeof cases[0]);
}
