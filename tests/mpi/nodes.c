// Ranks on several nodes: HAUL_TEST_NODES says how many there must be, told apart by their network
// namespaces. Run by tests/e2e/off_node.sh; on one node everything is skipped.
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { name_bytes = 64 };
static int node_of[1024];  // by rank

// Numbers the nodes in the order of their first ranks; how many there are.
static int count_nodes(void) {
  char mine[name_bytes] = "";
  const ssize_t length = readlink("/proc/self/ns/net", mine, sizeof mine - 1);
  require(length > 0, "the network namespace has no name");
  char* names = allocate((size_t)rank_count * name_bytes);
  MPI_Allgather(mine, name_bytes, MPI_CHAR, names, name_bytes, MPI_CHAR, MPI_COMM_WORLD);
  int nodes = 0;
  for (int rank = 0; rank < rank_count; rank++) {
    node_of[rank] = -1;
    for (int other = 0; other < rank && node_of[rank] < 0; other++) {
      if (strcmp(names + rank * name_bytes, names + other * name_bytes) == 0)
        node_of[rank] = node_of[other];
    }
    if (node_of[rank] < 0) node_of[rank] = nodes++;
  }
  free(names);
  return nodes;
}

static bool on_several_nodes(void) {
  const char* wanted = getenv("HAUL_TEST_NODES");
  if (wanted == NULL) {
    skip("HAUL_TEST_NODES is not set: all ranks are on one node");
    return false;
  }
  const int nodes = count_nodes();
  require(nodes == atoi(wanted), "the ranks are on %d nodes instead of %s", nodes, wanted);
  return true;
}

static const int sizes[] = {0, 1, 32, 33, 1000, 8000, 16000, 17000, 70000, 1100000};
enum { size_count = sizeof sizes / sizeof sizes[0], rounds = 30 };

static int size_for(int from, int to, int round) {
  return sizes[(from * 7 + to * 3 + round) % size_count];
}

// Every rank sends to every rank of both kinds, and receives from whoever comes first; of each
// sender the messages come in order.
static void test_any_source(void) {
  if (!on_several_nodes()) return;
  const int total = rounds * rank_count;
  unsigned char** out = allocate((size_t)total * sizeof *out);
  MPI_Request* requests = allocate((size_t)total * sizeof(MPI_Request));
  int* next = allocate((size_t)rank_count * sizeof *next);
  memset(next, 0, (size_t)rank_count * sizeof *next);
  int sent = 0;
  for (int round = 0; round < rounds; round++) {
    for (int to = 0; to < rank_count; to++, sent++) {
      const int bytes = size_for(my_rank, to, round);
      out[sent] = allocate((size_t)bytes);
      fill(out[sent], (size_t)bytes, seed_of(1, my_rank, to, round));
      MPI_Isend(out[sent], bytes, MPI_BYTE, to, round, MPI_COMM_WORLD, &requests[sent]);
    }
  }
  const int largest = sizes[size_count - 1];
  unsigned char* in = allocate((size_t)largest);
  int from_nodes[2] = {0, 0};  // this one, others
  for (int i = 0; i < total; i++) {
    MPI_Status status;
    int bytes = -1;
    MPI_Recv(in, largest, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    const int from = status.MPI_SOURCE, round = next[from]++;
    require(status.MPI_TAG == round, "message %d of rank %d comes as its message %d",
            status.MPI_TAG, from, round);
    require(bytes == size_for(from, my_rank, round), "%d bytes from rank %d instead of %d", bytes,
            from, size_for(from, my_rank, round));
    expect(in, (size_t)bytes, seed_of(1, from, my_rank, round), "from any source");
    from_nodes[node_of[from] != node_of[my_rank]]++;
  }
  require(from_nodes[0] > 0 && from_nodes[1] > 0, "%d messages came from this node, %d from others",
          from_nodes[0], from_nodes[1]);
  MPI_Waitall(sent, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < sent; i++) free(out[i]);
  free(in);
  free(out);
  free(requests);
  free(next);
}

// A large message under way to another node holds up nobody who talks within this one.
static void test_mixed_exchange(void) {
  if (!on_several_nodes()) return;
  enum { large_bytes = 8 << 20, small_bytes = 100, small_messages = 200 };
  unsigned char* large_out = allocate(large_bytes);
  unsigned char* large_in = allocate(large_bytes);
  const int right = right_of_me(), left = left_of_me();
  fill(large_out, large_bytes, seed_of(2, my_rank, right, 0));
  memset(large_in, 0, large_bytes);
  MPI_Request large[2];
  MPI_Irecv(large_in, large_bytes, MPI_BYTE, left, 1, MPI_COMM_WORLD, &large[0]);
  MPI_Isend(large_out, large_bytes, MPI_BYTE, right, 1, MPI_COMM_WORLD, &large[1]);
  for (int i = 0; i < small_messages; i++) {
    unsigned char out[small_bytes], in[small_bytes];
    fill(out, sizeof out, seed_of(3, my_rank, left, i));
    MPI_Sendrecv(out, sizeof out, MPI_BYTE, left, 2, in, sizeof in, MPI_BYTE, right, 2,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(in, sizeof in, seed_of(3, right, my_rank, i), "small, beside large ones");
  }
  MPI_Waitall(2, large, MPI_STATUSES_IGNORE);
  expect(large_in, large_bytes, seed_of(2, left, my_rank, 0), "large");
  free(large_out);
  free(large_in);
}

// One-sided: every rank writes into, reads from and adds to the windows of all.
static void test_window(void) {
  if (!on_several_nodes()) return;
  enum { words = 5000 };
  const size_t bytes = (size_t)rank_count * words * sizeof(int64_t);
  int64_t* memory;
  MPI_Win window;
  MPI_Win_allocate((MPI_Aint)(bytes + sizeof(int64_t)), sizeof(int64_t), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &memory, &window);
  const MPI_Aint counter = (MPI_Aint)rank_count * words;
  MPI_Win_fence(0, window);
  memory[counter] = 0;
  MPI_Win_fence(0, window);
  int64_t* data = allocate(words * sizeof *data);
  fill(data, words * sizeof *data, seed_of(4, my_rank, 0, 0));
  const int64_t one = 1;
  for (int to = 0; to < rank_count; to++) {
    MPI_Put(data, words, MPI_INT64_T, to, (MPI_Aint)my_rank * words, words, MPI_INT64_T, window);
    MPI_Accumulate(&one, 1, MPI_INT64_T, to, counter, 1, MPI_INT64_T, MPI_SUM, window);
  }
  MPI_Win_fence(0, window);
  require(memory[counter] == rank_count, "%lld ranks have added one, not %d",
          (long long)memory[counter], rank_count);
  for (int from = 0; from < rank_count; from++) {
    expect(memory + (size_t)from * words, words * sizeof *memory, seed_of(4, from, 0, 0), "put");
  }
  int64_t* got = allocate(words * sizeof *got);
  for (int from = 0; from < rank_count; from++) {
    memset(got, 0, words * sizeof *got);
    MPI_Get(got, words, MPI_INT64_T, from, (MPI_Aint)my_rank * words, words, MPI_INT64_T, window);
    MPI_Win_fence(0, window);
    expect(got, words * sizeof *got, seed_of(4, my_rank, 0, 0), "got back");
  }
  MPI_Win_free(&window);
  free(data);
  free(got);
}

int main(int argc, char** argv) {
  static const TestCase cases[] = {
      {"any_source", test_any_source},
      {"mixed_exchange", test_mixed_exchange},
      {"window", test_window},
  };
  return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, sizeof cases / sizeof cases[0]);
}
