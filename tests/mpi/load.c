// Many messages at once: floods that nobody expects yet, thousands of requests, all sizes in one
// stream.
#include "harness.h"

#include <stdlib.h>
#include <string.h>

// 0 B to 16 MiB: mostly small, few large ones.
static int random_size(Random* random) {
  const int kind = random_below(random, 1000);
  if (kind < 500) return random_below(random, 65);
  if (kind < 750) return random_below(random, 4097);
  if (kind < 950) return random_below(random, 65537);
  if (kind < 995) return random_below(random, 300001);
  return random_below(random, 2000001);
}

// One tag, one pair: the order of sending is the order of receiving, whatever the sizes.
static void test_order(void) {
  enum { count = 600, window = 30, biggest = 16 << 20 };
  Random sending = {seed_of(1, my_rank, 0, 0)};
  Random receiving = {seed_of(1, left_of_me(), 0, 0)};
  MPI_Request sends[window];
  unsigned char* out[window] = {NULL};
  for (int i = 0; i < window; i++) sends[i] = MPI_REQUEST_NULL;
  unsigned char* in = allocate(biggest);
  for (int first = 0; first < count; first += window) {
    MPI_Waitall(window, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < window; i++) {
      const int bytes = first + i == count / 2 ? biggest : random_size(&sending);
      free(out[i]);
      out[i] = allocate((size_t)bytes);
      fill(out[i], (size_t)bytes, seed_of(2, my_rank, first + i, bytes));
      MPI_Isend(out[i], bytes, MPI_BYTE, right_of_me(), 1, MPI_COMM_WORLD, &sends[i]);
    }
    for (int i = 0; i < window; i++) {
      const int bytes = first + i == count / 2 ? biggest : random_size(&receiving);
      MPI_Status status;
      MPI_Recv(in, biggest, MPI_BYTE, left_of_me(), 1, MPI_COMM_WORLD, &status);
      int got = -1;
      MPI_Get_count(&status, MPI_BYTE, &got);
      require(got == bytes, "message %d has %d bytes, not %d", first + i, got, bytes);
      expect(in, (size_t)bytes, seed_of(2, left_of_me(), first + i, bytes), "in order");
    }
  }
  MPI_Waitall(window, sends, MPI_STATUSES_IGNORE);
  for (int i = 0; i < window; i++) free(out[i]);
  free(in);
}

// Empty messages are messages: counted, ordered, apart by their tags.
static void test_empty(void) {
  enum { count = 3000 };
  MPI_Request request;
  for (int i = 0; i < count; i++) {
    MPI_Isend(NULL, 0, MPI_BYTE, right_of_me(), i % 7, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  }
  for (int i = 0; i < count; i++) {
    MPI_Status status;
    int bytes = -1;
    MPI_Recv(NULL, 0, MPI_BYTE, left_of_me(), MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    require(status.MPI_TAG == i % 7 && bytes == 0, "empty message %d has tag %d and %d bytes", i,
            status.MPI_TAG, bytes);
  }
}

// All ranks send to all others before anyone receives, and receive the last first.
static void test_flood(void) {
  const int per_peer = 4000 / (rank_count - 1);
  const int total = per_peer * (rank_count - 1);
  MPI_Request* sends = allocate((size_t)total * sizeof *sends);
  unsigned char* out = allocate((size_t)total * 2048);
  unsigned char* in = allocate(2048);
  int sent = 0;
  for (int i = 0; i < per_peer; i++) {
    for (int distance = 1; distance < rank_count; distance++) {
      const int to = (my_rank + distance) % rank_count;
      const int bytes = (i * 37) % 2048;
      unsigned char* message = out + (size_t)sent * 2048;
      fill(message, (size_t)bytes, seed_of(3, my_rank, to, i));
      MPI_Isend(message, bytes, MPI_BYTE, to, i, MPI_COMM_WORLD, &sends[sent]);
      sent++;
    }
  }
  for (int i = per_peer - 1; i >= 0; i--) {
    for (int distance = 1; distance < rank_count; distance++) {
      const int from = (my_rank + distance) % rank_count;
      const int bytes = (i * 37) % 2048;
      MPI_Recv(in, bytes, MPI_BYTE, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      expect(in, (size_t)bytes, seed_of(3, from, my_rank, i), "out of a flood");
    }
  }
  MPI_Waitall(total, sends, MPI_STATUSES_IGNORE);
  free(sends);
  free(out);
  free(in);
}

// Every other rank floods rank 0, which is busy with another communicator's barrier meanwhile.
static void test_flood_of_one(void) {
  enum { count = 400, most = 100000 };
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Request sends[count];
  unsigned char* out[count];
  for (int i = 0; i < count && my_rank != 0; i++) {
    const int bytes = i % 40 == 0 ? most : 1024;
    out[i] = allocate((size_t)bytes);
    fill(out[i], (size_t)bytes, seed_of(6, my_rank, i, 0));
    MPI_Isend(out[i], bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, &sends[i]);
  }
  MPI_Barrier(other);
  unsigned char* in = allocate(most);
  for (int i = 0; i < count && my_rank == 0; i++) {
    for (int from = rank_count - 1; from > 0; from--) {
      const int bytes = i % 40 == 0 ? most : 1024;
      MPI_Recv(in, bytes, MPI_BYTE, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      expect(in, (size_t)bytes, seed_of(6, from, i, 0), "out of a flood from all");
    }
  }
  if (my_rank != 0) {
    MPI_Waitall(count, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; i++) free(out[i]);
  }
  free(in);
  MPI_Comm_free(&other);
}

// Thousands of receives posted, then thousands of sends, in another order.
static void test_many_requests(void) {
  enum { count = 5000, bytes = 72 };
  MPI_Request* requests = allocate(2 * count * sizeof *requests);
  unsigned char* in = allocate((size_t)count * bytes);
  unsigned char* out = allocate((size_t)count * bytes);
  for (int i = 0; i < count; i++) {
    MPI_Irecv(in + (size_t)i * bytes, bytes, MPI_BYTE, left_of_me(), i, MPI_COMM_WORLD,
              &requests[i]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int k = 0; k < count; k++) {
    const int i = (k * 7) % count;  // 7 does not divide 5000
    fill(out + (size_t)i * bytes, bytes, seed_of(4, my_rank, i, 0));
    MPI_Isend(out + (size_t)i * bytes, bytes, MPI_BYTE, right_of_me(), i, MPI_COMM_WORLD,
              &requests[count + i]);
  }
  MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < count; i++) {
    expect(in + (size_t)i * bytes, bytes, seed_of(4, left_of_me(), i, 0), "one of thousands");
  }
  free(requests);
  free(in);
  free(out);
}

// Large messages, all outstanding at once, both ways, with every peer.
static void test_many_large(void) {
  const int bytes = 500003;
  const int per_peer = 12 / rank_count + 1;
  const int total = per_peer * rank_count;
  MPI_Request* requests = allocate((size_t)(2 * total) * sizeof *requests);
  unsigned char* in = allocate((size_t)total * (size_t)bytes);
  unsigned char* out = allocate((size_t)total * (size_t)bytes);
  for (int i = 0; i < total; i++) {
    const int peer = i % rank_count;
    fill(out + (size_t)i * (size_t)bytes, (size_t)bytes, seed_of(5, my_rank, peer, i / rank_count));
    MPI_Isend(out + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD,
              &requests[total + i]);
  }
  for (int i = 0; i < total; i++) {
    MPI_Irecv(in + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, i % rank_count, 1, MPI_COMM_WORLD,
              &requests[i]);
  }
  MPI_Waitall(2 * total, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < total; i++) {
    expect(in + (size_t)i * (size_t)bytes, (size_t)bytes,
           seed_of(5, i % rank_count, my_rank, i / rank_count), "one of many large");
  }
  free(requests);
  free(in);
  free(out);
}

// 64 MiB one way, then 16 MiB both ways at once, between the first rank and the last.
static void test_huge(void) {
  enum { huge = 64 << 20, large = (16 << 20) + 5 };
  const int last = rank_count - 1;
  if (my_rank != 0 && my_rank != last) return;
  const int peer = last - my_rank;
  unsigned char* data = allocate(huge);
  if (my_rank == 0) {
    fill(data, huge, 7);
    MPI_Send(data, huge, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
  } else {
    MPI_Recv(data, huge, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(data, huge, 7, "64 MiB");
  }
  unsigned char* out = allocate(large);
  fill(out, large, seed_of(8, my_rank, 0, 0));
  MPI_Sendrecv(out, large, MPI_BYTE, peer, 2, data, large, MPI_BYTE, peer, 2, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  expect(data, large, seed_of(8, peer, 0, 0), "16 MiB both ways");
  free(out);
  free(data);
}

int main(int argc, char** argv) {
  const TestCase cases[] = {
      {"order", test_order},
      {"empty", test_empty},
      {"flood", test_flood},
      {"flood_of_one", test_flood_of_one},
      {"many_requests", test_many_requests},
      {"many_large", test_many_large},
      {"huge", test_huge},
  };
  return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, sizeof cases / sizeof cases[0]);
}
