// Every collective that moves data, blocking and not, in place, with all roots; reductions of data
// are in reductions.c.
#include "harness.h"

#include <stdlib.h>
#include <string.h>

static const int counts[] = {0, 1, 700, 20000};  // of ints
enum { size_count = sizeof counts / sizeof counts[0] };

// The element that rank `from` has for rank `to` at `index`.
static int element(int from, int to, int index) {
  return from * 7919 + to * 104729 + index * 31;
}

static int* ints(int count) {
  return allocate((size_t)count * sizeof(int));
}

static void set(int* to, int from_rank, int to_rank, int count) {
  for (int i = 0; i < count; i++) to[i] = element(from_rank, to_rank, i);
}

static void require_block(const int* got, int from_rank, int to_rank, int count, const char* what) {
  for (int i = 0; i < count; i++) {
    require(got[i] == element(from_rank, to_rank, i),
            "%s: element %d of %d from rank %d is %d, not %d", what, i, count, from_rank, got[i],
            element(from_rank, to_rank, i));
  }
}

// The first two and the last: others are like the second.
static int next_root(int root) {
  return root == 1 && rank_count > 2 ? rank_count - 1 : root + 1;
}

// The collectives of one kind: blocking, or started and then waited for.
static bool nonblocking;
static MPI_Request pending;

static void finish(void) {
  if (nonblocking) MPI_Wait(&pending, MPI_STATUS_IGNORE);
}

static void run_bcast(int count) {
  for (int root = 0; root < rank_count; root = next_root(root)) {
    int* data = ints(count);
    set(data, my_rank == root ? root : -1, 0, count);
    if (nonblocking) {
      MPI_Ibcast(data, count, MPI_INT, root, MPI_COMM_WORLD, &pending);
    } else {
      MPI_Bcast(data, count, MPI_INT, root, MPI_COMM_WORLD);
    }
    finish();
    require_block(data, root, 0, count, "Bcast");
    free(data);
  }
}

static void run_gather(int count, bool in_place) {
  for (int root = 0; root < rank_count; root = next_root(root)) {
    int* mine = ints(count);
    int* all = ints(count * rank_count);
    set(mine, my_rank, 0, count);
    set(all + my_rank * count, my_rank, 0, in_place ? count : 0);
    const void* source = in_place && my_rank == root ? MPI_IN_PLACE : mine;
    if (nonblocking) {
      MPI_Igather(source, count, MPI_INT, all, count, MPI_INT, root, MPI_COMM_WORLD, &pending);
    } else {
      MPI_Gather(source, count, MPI_INT, all, count, MPI_INT, root, MPI_COMM_WORLD);
    }
    finish();
    for (int r = 0; r < rank_count && my_rank == root; r++) {
      require_block(all + r * count, r, 0, count, "Gather");
    }
    free(mine);
    free(all);
  }
}

static void run_scatter(int count, bool in_place) {
  for (int root = 0; root < rank_count; root = next_root(root)) {
    int* mine = ints(count);
    int* all = ints(count * rank_count);
    for (int r = 0; r < rank_count; r++) set(all + r * count, root, r, count);
    void* target = in_place && my_rank == root ? MPI_IN_PLACE : mine;
    if (nonblocking) {
      MPI_Iscatter(all, count, MPI_INT, target, count, MPI_INT, root, MPI_COMM_WORLD, &pending);
    } else {
      MPI_Scatter(all, count, MPI_INT, target, count, MPI_INT, root, MPI_COMM_WORLD);
    }
    finish();
    if (target == mine) require_block(mine, root, my_rank, count, "Scatter");
    free(mine);
    free(all);
  }
}

static void run_allgather(int count, bool in_place) {
  int* mine = ints(count);
  int* all = ints(count * rank_count);
  set(mine, my_rank, 0, count);
  set(all + my_rank * count, my_rank, 0, in_place ? count : 0);
  const void* source = in_place ? MPI_IN_PLACE : mine;
  if (nonblocking) {
    MPI_Iallgather(source, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD, &pending);
  } else {
    MPI_Allgather(source, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD);
  }
  finish();
  for (int r = 0; r < rank_count; r++) require_block(all + r * count, r, 0, count, "Allgather");
  free(mine);
  free(all);
}

static void run_alltoall(int count, bool in_place) {
  int* out = ints(count * rank_count);
  int* in = ints(count * rank_count);
  for (int r = 0; r < rank_count; r++) {
    set(out + r * count, my_rank, r, count);
    set(in + r * count, my_rank, r, count);
  }
  const void* source = in_place ? MPI_IN_PLACE : out;
  if (nonblocking) {
    MPI_Ialltoall(source, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD, &pending);
  } else {
    MPI_Alltoall(source, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
  }
  finish();
  for (int r = 0; r < rank_count; r++) require_block(in + r * count, r, my_rank, count, "Alltoall");
  free(out);
  free(in);
}

// Of the v and w variants: rank r has (r + 1) % 3 times the count, so some have nothing, with gaps
// between.
static int share(int rank, int count) {
  return (rank + 1) % 3 * count;
}

typedef struct Spread {
  int* counts;
  int* places;
  int* data;
} Spread;

static Spread make_spread(int count) {
  Spread spread = {ints(rank_count), ints(rank_count), NULL};
  int total = 0;
  for (int r = 0; r < rank_count; r++) {
    spread.counts[r] = share(r, count);
    spread.places[r] = total + 3;
    total += spread.counts[r] + 3;
  }
  spread.data = ints(total + 3);
  for (int i = 0; i < total + 3; i++) spread.data[i] = -5;
  return spread;
}

static void require_spread(Spread* spread, const char* what) {
  for (int r = 0; r < rank_count; r++) {
    for (int i = 1; i <= 3; i++) {
      require(spread->data[spread->places[r] - i] == -5, "%s wrote into a gap", what);
    }
    require_block(spread->data + spread->places[r], r, 0, spread->counts[r], what);
  }
}

static void free_spread(Spread* spread) {
  free(spread->counts);
  free(spread->places);
  free(spread->data);
}

static void run_gatherv(int count) {
  for (int root = 0; root < rank_count; root = next_root(root)) {
    Spread in = make_spread(count);
    int* mine = ints(share(my_rank, count));
    set(mine, my_rank, 0, share(my_rank, count));
    if (nonblocking) {
      MPI_Igatherv(mine, share(my_rank, count), MPI_INT, in.data, in.counts, in.places, MPI_INT,
                   root, MPI_COMM_WORLD, &pending);
    } else {
      MPI_Gatherv(mine, share(my_rank, count), MPI_INT, in.data, in.counts, in.places, MPI_INT,
                  root, MPI_COMM_WORLD);
    }
    finish();
    if (my_rank == root) require_spread(&in, "Gatherv");
    free(mine);
    free_spread(&in);
  }
}

static void run_scatterv(int count) {
  for (int root = 0; root < rank_count; root = next_root(root)) {
    Spread out = make_spread(count);
    for (int r = 0; r < rank_count; r++) set(out.data + out.places[r], root, r, out.counts[r]);
    int* mine = ints(share(my_rank, count));
    if (nonblocking) {
      MPI_Iscatterv(out.data, out.counts, out.places, MPI_INT, mine, share(my_rank, count), MPI_INT,
                    root, MPI_COMM_WORLD, &pending);
    } else {
      MPI_Scatterv(out.data, out.counts, out.places, MPI_INT, mine, share(my_rank, count), MPI_INT,
                   root, MPI_COMM_WORLD);
    }
    finish();
    require_block(mine, root, my_rank, share(my_rank, count), "Scatterv");
    free(mine);
    free_spread(&out);
  }
}

static void run_allgatherv(int count) {
  Spread in = make_spread(count);
  int* mine = ints(share(my_rank, count));
  set(mine, my_rank, 0, share(my_rank, count));
  if (nonblocking) {
    MPI_Iallgatherv(mine, share(my_rank, count), MPI_INT, in.data, in.counts, in.places, MPI_INT,
                    MPI_COMM_WORLD, &pending);
  } else {
    MPI_Allgatherv(mine, share(my_rank, count), MPI_INT, in.data, in.counts, in.places, MPI_INT,
                   MPI_COMM_WORLD);
  }
  finish();
  require_spread(&in, "Allgatherv");
  free(mine);
  free_spread(&in);
}

// What goes from rank a to rank b has the size share((a + b) ...): the same said at both ends.
static void run_alltoallv(int count, bool with_types) {
  int* sizes = ints(rank_count);
  int* places = ints(rank_count);
  MPI_Datatype* types = allocate((size_t)rank_count * sizeof *types);
  int total = 0;
  for (int r = 0; r < rank_count; r++) {
    sizes[r] = share(my_rank + r, count);
    places[r] = with_types ? total * (int)sizeof(int) : total;
    types[r] = MPI_INT;
    total += sizes[r];
  }
  int* out = ints(total);
  int* in = ints(total);
  int begin = 0;
  for (int r = 0; r < rank_count; begin += sizes[r], r++) set(out + begin, my_rank, r, sizes[r]);
  if (with_types && nonblocking) {
    MPI_Ialltoallw(out, sizes, places, types, in, sizes, places, types, MPI_COMM_WORLD, &pending);
  } else if (with_types) {
    MPI_Alltoallw(out, sizes, places, types, in, sizes, places, types, MPI_COMM_WORLD);
  } else if (nonblocking) {
    MPI_Ialltoallv(out, sizes, places, MPI_INT, in, sizes, places, MPI_INT, MPI_COMM_WORLD,
                   &pending);
  } else {
    MPI_Alltoallv(out, sizes, places, MPI_INT, in, sizes, places, MPI_INT, MPI_COMM_WORLD);
  }
  finish();
  begin = 0;
  for (int r = 0; r < rank_count; begin += sizes[r], r++) {
    require_block(in + begin, r, my_rank, sizes[r], with_types ? "Alltoallw" : "Alltoallv");
  }
  free(out);
  free(in);
  free(sizes);
  free(places);
  free(types);
}

static void run_equal_shares(void) {
  for (int i = 0; i < size_count; i++) {
    run_bcast(counts[i]);
    for (int in_place = 0; in_place < 2; in_place++) {
      run_gather(counts[i], in_place);
      run_scatter(counts[i], in_place);
      run_allgather(counts[i], in_place);
      run_alltoall(counts[i], in_place && !nonblocking);
    }
  }
}

static void run_unequal_shares(void) {
  for (int i = 0; i < size_count; i++) {
    run_gatherv(counts[i]);
    run_scatterv(counts[i]);
    run_allgatherv(counts[i]);
    run_alltoallv(counts[i], false);
    run_alltoallv(counts[i], true);
  }
}

static void test_blocking(void) {
  nonblocking = false;
  run_equal_shares();
}

static void test_nonblocking(void) {
  nonblocking = true;
  run_equal_shares();
}

static void test_blocking_v_and_w(void) {
  nonblocking = false;
  run_unequal_shares();
}

static void test_nonblocking_v_and_w(void) {
  nonblocking = true;
  run_unequal_shares();
}

// A barrier lets nobody out before the last has come in: the last one's message has been sent
// before.
static void test_barrier(void) {
  for (int round = 0; round < 40; round++) {
    const int last = round % rank_count;
    int token = round;
    if (my_rank == last) {
      for (int r = 0; r < rank_count; r++) {
        if (r != last) MPI_Send(&token, 1, MPI_INT, r, 9, MPI_COMM_WORLD);
      }
    }
    if (round % 2 == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
    } else {
      MPI_Ibarrier(MPI_COMM_WORLD, &pending);
      MPI_Wait(&pending, MPI_STATUS_IGNORE);
    }
    if (my_rank != last) {
      MPI_Recv(&token, 1, MPI_INT, last, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      require(token == round, "round %d brought token %d", round, token);
    }
  }
}

// An Ibarrier is not over while one rank has not come: it is waiting for a message from this one.
static void test_ibarrier_waits(void) {
  MPI_Request barrier;
  int token = 1;
  if (my_rank == 1) {
    MPI_Recv(&token, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
  } else {
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    if (my_rank == 0) {
      for (int k = 0; k < 100; k++) {
        int done = 0;
        MPI_Test(&barrier, &done, MPI_STATUS_IGNORE);
        require(!done, "an Ibarrier was over before rank 1 had come");
      }
      MPI_Send(&token, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
    }
  }
  MPI_Wait(&barrier, MPI_STATUS_IGNORE);
}

// Many collectives under way at once on one communicator, with messages between them.
static void test_overlapped(void) {
  enum { count = 24, elements = 300 };
  MPI_Request requests[count + 2];
  int* data[count];
  for (int i = 0; i < count; i++) {
    data[i] = ints(elements * rank_count);
    const int root = i % rank_count;
    if (i % 2 == 0) {
      set(data[i], my_rank == root ? root : -1, i, elements);
      MPI_Ibcast(data[i], elements, MPI_INT, root, MPI_COMM_WORLD, &requests[i]);
    } else {
      set(data[i] + my_rank * elements, my_rank, i, elements);
      MPI_Iallgather(MPI_IN_PLACE, 0, MPI_INT, data[i], elements, MPI_INT, MPI_COMM_WORLD,
                     &requests[i]);
    }
  }
  int in = -1;
  MPI_Irecv(&in, 1, MPI_INT, left_of_me(), 3, MPI_COMM_WORLD, &requests[count]);
  MPI_Isend(&my_rank, 1, MPI_INT, right_of_me(), 3, MPI_COMM_WORLD, &requests[count + 1]);
  MPI_Waitall(count + 2, requests, MPI_STATUSES_IGNORE);
  require(in == left_of_me(), "the message beside collectives brought %d", in);
  for (int i = 0; i < count; i++) {
    if (i % 2 == 0) require_block(data[i], i % rank_count, i, elements, "overlapped Ibcast");
    for (int r = 0; r < rank_count && i % 2 == 1; r++) {
      require_block(data[i] + r * elements, r, i, elements, "overlapped Iallgather");
    }
    free(data[i]);
  }
}

int main(int argc, char** argv) {
  const TestCase cases[] = {
      {"blocking", test_blocking},
      {"nonblocking", test_nonblocking},
      {"blocking_v_and_w", test_blocking_v_and_w},
      {"nonblocking_v_and_w", test_nonblocking_v_and_w},
      {"barrier", test_barrier},
      {"ibarrier_waits", test_ibarrier_waits},
      {"overlapped", test_overlapped},
  };
  return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, sizeof cases / sizeof cases[0]);
}
