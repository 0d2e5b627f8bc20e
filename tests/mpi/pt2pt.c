// Point to point: every send mode, every way to complete, persistent requests, to oneself, empty,
// large.
#include "harness.h"

#include <stdlib.h>
#include <string.h>

// Around every threshold that a transport is likely to have.
static const int sizes[] = {0,     1,     31,    32,    33,     64,     65,
                            192,   1000,  1024,  4095,  4096,   4097,   8192,
                            16384, 16400, 65536, 65537, 262144, 300007, 1048579};
enum { size_count = sizeof sizes / sizeof sizes[0], guard_bytes = 64 };

typedef struct Message {
  unsigned char* bytes;  // followed by guard_bytes of 0xee in a received one
  int size;
  uint64_t seed;
} Message;

static Message outgoing(int kind, int index, int size) {
  Message message = {allocate((size_t)size), size, seed_of(kind, my_rank, index, size)};
  fill(message.bytes, (size_t)size, message.seed);
  return message;
}

static Message incoming(int kind, int index, int size, int source) {
  Message message = {allocate((size_t)size + guard_bytes), size,
                     seed_of(kind, source, index, size)};
  memset(message.bytes, 0xee, (size_t)size + guard_bytes);
  return message;
}

static void check_and_free(Message* message, const char* what) {
  expect(message->bytes, (size_t)message->size, message->seed, what);
  expect_bytes(message->bytes + message->size, guard_bytes, 0xee, "beyond the message");
  free(message->bytes);
}

static void require_status(const MPI_Status* status, int source, int tag, int size) {
  int count = -1;
  MPI_Get_count(status, MPI_BYTE, &count);
  require(status->MPI_SOURCE == source && status->MPI_TAG == tag && count == size,
          "status says source %d tag %d bytes %d, not %d %d %d", status->MPI_SOURCE,
          status->MPI_TAG, count, source, tag, size);
}

enum { mode_standard, mode_synchronous, mode_buffered, mode_ready, mode_count };

static void send_blocking(int mode, const Message* message, int to, int tag) {
  int (*const calls[])(const void*, int, MPI_Datatype, int, int, MPI_Comm) = {MPI_Send, MPI_Ssend,
                                                                              MPI_Bsend, MPI_Rsend};
  calls[mode](message->bytes, message->size, MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

static MPI_Request send_nonblocking(int mode, const Message* message, int to, int tag) {
  int (*const calls[])(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = {
      MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend};
  MPI_Request request = MPI_REQUEST_NULL;
  calls[mode](message->bytes, message->size, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
  return request;
}

static size_t attached_bytes;

static void attach_buffer(void) {
  attached_bytes = 0;
  for (int i = 0; i < size_count; i++) attached_bytes += (size_t)sizes[i] + MPI_BSEND_OVERHEAD;
  MPI_Buffer_attach(allocate(attached_bytes), (int)attached_bytes);
}

static void detach_buffer(void) {
  void* buffer = NULL;
  int bytes = 0;
  MPI_Buffer_detach(&buffer, &bytes);
  require(bytes == (int)attached_bytes, "detached %d bytes, not the %zu attached", bytes,
          attached_bytes);
  free(buffer);
}

// Receives are posted before any send starts: what a ready send needs.
static void test_send_modes(void) {
  attach_buffer();
  for (int mode = 0; mode < 2 * mode_count; mode++) {
    Message in[size_count];
    Message out[size_count];
    MPI_Request receives[size_count];
    MPI_Request sends[size_count];
    MPI_Status statuses[size_count];
    for (int i = 0; i < size_count; i++) {
      in[i] = incoming(mode, i, sizes[i], left_of_me());
      out[i] = outgoing(mode, i, sizes[i]);
      MPI_Irecv(in[i].bytes, in[i].size + guard_bytes, MPI_BYTE, left_of_me(), i, MPI_COMM_WORLD,
                &receives[i]);
      sends[i] = MPI_REQUEST_NULL;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < size_count; i++) {
      if (mode < mode_count) {
        send_blocking(mode, &out[i], right_of_me(), i);
      } else {
        sends[i] = send_nonblocking(mode - mode_count, &out[i], right_of_me(), i);
      }
    }
    MPI_Waitall(size_count, receives, statuses);
    MPI_Waitall(size_count, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < size_count; i++) {
      require_status(&statuses[i], left_of_me(), i, sizes[i]);
      check_and_free(&in[i], "received into a posted buffer");
      free(out[i].bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  detach_buffer();
}

// Everything has been sent, mostly arrived, before the first receive, and is received backwards.
static void test_unexpected(void) {
  attach_buffer();
  const int modes[] = {mode_standard, mode_synchronous, mode_buffered};
  for (int m = 0; m < 3; m++) {
    Message out[size_count];
    MPI_Request sends[size_count];
    for (int i = 0; i < size_count; i++) {
      out[i] = outgoing(100 + m, i, sizes[i]);
      sends[i] = send_nonblocking(modes[m], &out[i], right_of_me(), i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = size_count - 1; i >= 0; i--) {
      Message in = incoming(100 + m, i, sizes[i], left_of_me());
      MPI_Status status;
      MPI_Recv(in.bytes, in.size + guard_bytes, MPI_BYTE, left_of_me(), i, MPI_COMM_WORLD, &status);
      require_status(&status, left_of_me(), i, sizes[i]);
      check_and_free(&in, "received although unexpected");
    }
    MPI_Waitall(size_count, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < size_count; i++) free(out[i].bytes);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  detach_buffer();
}

// A synchronous send is not done before its receive has begun, whatever its size.
static void test_ssend_waits(void) {
  const int some[] = {0, 8, 1000, 10000, 500000};
  for (int i = 0; i < 5; i++) {
    int go = 1;
    if (my_rank == 0) {
      Message out = outgoing(200, i, some[i]);
      MPI_Request request = send_nonblocking(mode_synchronous, &out, 1, 1);
      for (int k = 0; k < 200; k++) {
        int done = 0;
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        require(!done, "a synchronous send of %d bytes was done before its receive", some[i]);
      }
      MPI_Send(&go, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      free(out.bytes);
    } else if (my_rank == 1) {
      MPI_Recv(&go, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      Message in = incoming(200, i, some[i], 0);
      MPI_Recv(in.bytes, in.size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      check_and_free(&in, "synchronous message");
    }
  }
}

enum { batch = 24 };

// The six ways to complete all of a batch of requests; each counts every request exactly once.
static void complete(int way, MPI_Request* requests, MPI_Status* statuses) {
  int done = 0;
  bool seen[batch] = {false};
  int indices[batch];
  MPI_Status some[batch];
  while (done < batch) {
    int count = 0;
    int index = 0;
    int flag = 0;
    switch (way) {
      case 0:
        MPI_Waitany(batch, requests, &index, &some[0]);
        indices[count++] = index;
        break;
      case 1: MPI_Waitsome(batch, requests, &count, indices, some); break;
      case 2:
        MPI_Testany(batch, requests, &index, &flag, &some[0]);
        if (flag) indices[count++] = index;
        break;
      case 3: MPI_Testsome(batch, requests, &count, indices, some); break;
      case 4:
        MPI_Testall(batch, requests, &flag, statuses);
        if (flag) return;
        break;
      default:
        for (int i = 0; i < batch; i++) {
          while (!flag) {
            MPI_Request_get_status(requests[i], &flag, &statuses[i]);
            yield_core();
          }
          MPI_Test(&requests[i], &flag, &statuses[i]);
          require(flag, "a request whose status was complete is not");
          flag = 0;
        }
        return;
    }
    for (int i = 0; i < count; i++) {
      require(indices[i] >= 0 && indices[i] < batch && !seen[indices[i]],
              "way %d: completed request %d twice or out of range", way, indices[i]);
      seen[indices[i]] = true;
      statuses[indices[i]] = some[i];
    }
    done += count;
    yield_core();
  }
}

static void test_completion(void) {
  for (int way = 0; way < 6; way++) {
    Message in[batch];
    Message out[batch];
    MPI_Request receives[batch];
    MPI_Request sends[batch];
    MPI_Status statuses[batch];
    for (int i = 0; i < batch; i++) {
      const int size = sizes[i % (size_count - 2)];
      in[i] = incoming(300 + way, i, size, left_of_me());
      out[i] = outgoing(300 + way, i, size);
      MPI_Irecv(in[i].bytes, in[i].size, MPI_BYTE, left_of_me(), i, MPI_COMM_WORLD, &receives[i]);
    }
    for (int i = 0; i < batch; i++) {
      const int backwards = batch - 1 - i;
      sends[i] = send_nonblocking(mode_standard, &out[backwards], right_of_me(), backwards);
    }
    complete(way, receives, statuses);
    for (int i = 0; i < batch; i++) {
      require(receives[i] == MPI_REQUEST_NULL, "way %d left request %d", way, i);
      require_status(&statuses[i], left_of_me(), i, in[i].size);
      check_and_free(&in[i], "received");
    }
    complete(way, sends, statuses);
    for (int i = 0; i < batch; i++) free(out[i].bytes);
  }
}

static void test_sendrecv(void) {
  for (int i = 0; i < size_count; i++) {
    Message out = outgoing(400, i, sizes[i]);
    Message in = incoming(400, i, sizes[i], left_of_me());
    MPI_Status status;
    MPI_Sendrecv(out.bytes, out.size, MPI_BYTE, right_of_me(), 7, in.bytes, in.size, MPI_BYTE,
                 left_of_me(), MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    require_status(&status, left_of_me(), 7, sizes[i]);
    expect(in.bytes, (size_t)in.size, in.seed, "received by Sendrecv");
    MPI_Sendrecv_replace(in.bytes, in.size, MPI_BYTE, left_of_me(), 8, right_of_me(), 8,
                         MPI_COMM_WORLD, &status);
    expect(in.bytes, (size_t)in.size, out.seed, "come back by Sendrecv_replace");
    MPI_Sendrecv(out.bytes, out.size, MPI_BYTE, MPI_PROC_NULL, 7, in.bytes, in.size, MPI_BYTE,
                 MPI_PROC_NULL, 7, MPI_COMM_WORLD, &status);
    require_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    in.seed = out.seed;
    check_and_free(&in, "untouched by MPI_PROC_NULL");
    free(out.bytes);
  }
}

static void test_self(void) {
  const MPI_Comm comms[] = {MPI_COMM_SELF, MPI_COMM_WORLD};
  for (int c = 0; c < 2; c++) {
    const int me = c == 0 ? 0 : my_rank;
    for (int i = 0; i < size_count; i++) {
      Message out = outgoing(500 + c, i, sizes[i]);
      Message in = incoming(500 + c, i, sizes[i], my_rank);
      MPI_Request request;
      MPI_Status status;
      if (i % 2 == 0) {
        MPI_Irecv(in.bytes, in.size, MPI_BYTE, me, 3, comms[c], &request);
        MPI_Send(out.bytes, out.size, MPI_BYTE, me, 3, comms[c]);
        MPI_Wait(&request, &status);
      } else {
        MPI_Isend(out.bytes, out.size, MPI_BYTE, me, 3, comms[c], &request);
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms[c], &status);
        require_status(&status, me, 3, sizes[i]);
        MPI_Recv(in.bytes, in.size, MPI_BYTE, me, 3, comms[c], &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
      require_status(&status, me, 3, sizes[i]);
      check_and_free(&in, "sent to oneself");
      free(out.bytes);
    }
  }
}

// Each round sends other bytes. Startall for receives, Start for sends.
static void run_persistent(int mode) {
  enum { rounds = 4, per_round = 5 };
  const int some[per_round] = {0, 24, 3000, 40000, 400000};
  int (*const inits[])(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = {
      MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init, MPI_Rsend_init};
  Message out[per_round];
  Message in[per_round];
  MPI_Request sends[per_round];
  MPI_Request receives[per_round];
  for (int i = 0; i < per_round; i++) {
    out[i] = outgoing(600, i, some[i]);
    in[i] = incoming(600, i, some[i], left_of_me());
    inits[mode](out[i].bytes, some[i], MPI_BYTE, right_of_me(), i, MPI_COMM_WORLD, &sends[i]);
    MPI_Recv_init(in[i].bytes, some[i], MPI_BYTE, left_of_me(), i, MPI_COMM_WORLD, &receives[i]);
  }
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < per_round; i++) {
      fill(out[i].bytes, (size_t)some[i], seed_of(600 + mode, my_rank, i, round));
      in[i].seed = seed_of(600 + mode, left_of_me(), i, round);
    }
    MPI_Startall(per_round, receives);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < per_round; i++) MPI_Start(&sends[i]);
    MPI_Waitall(per_round, sends, MPI_STATUSES_IGNORE);
    MPI_Waitall(per_round, receives, MPI_STATUSES_IGNORE);
    for (int i = 0; i < per_round; i++) {
      require(sends[i] != MPI_REQUEST_NULL, "a persistent request is gone after its wait");
      expect(in[i].bytes, (size_t)some[i], in[i].seed, "received by a persistent request");
    }
  }
  for (int i = 0; i < per_round; i++) {
    MPI_Request_free(&sends[i]);
    MPI_Request_free(&receives[i]);
    check_and_free(&in[i], "received last by a persistent request");
    free(out[i].bytes);
  }
}

static void test_persistent(void) {
  run_persistent(mode_standard);
  run_persistent(mode_synchronous);
  run_persistent(mode_ready);
}

// Open MPI 4 sends old bytes from 40000 on, also natively: a case of its own.
static void test_persistent_buffered(void) {
  attach_buffer();
  run_persistent(mode_buffered);
  detach_buffer();
}

#if MPI_VERSION >= 4
static void test_isendrecv(void) {
  for (int i = 0; i < size_count; i++) {
    Message out = outgoing(800, i, sizes[i]);
    Message in = incoming(800, i, sizes[i], left_of_me());
    MPI_Request request;
    MPI_Isendrecv(out.bytes, out.size, MPI_BYTE, right_of_me(), 5, in.bytes, in.size, MPI_BYTE,
                  left_of_me(), 5, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(in.bytes, (size_t)in.size, in.seed, "received by Isendrecv");
    MPI_Isendrecv_replace(in.bytes, in.size, MPI_BYTE, left_of_me(), 6, right_of_me(), 6,
                          MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    in.seed = out.seed;
    check_and_free(&in, "come back by Isendrecv_replace");
    free(out.bytes);
  }
}
#else
static void test_isendrecv(void) {
  skip("MPI 4 only");
}
#endif

int main(int argc, char** argv) {
  const TestCase cases[] = {
      {"send_modes", test_send_modes},   {"unexpected", test_unexpected},
      {"ssend_waits", test_ssend_waits}, {"completion", test_completion},
      {"sendrecv", test_sendrecv},       {"self", test_self},
      {"persistent", test_persistent},   {"persistent_buffered", test_persistent_buffered},

      {"isendrecv", test_isendrecv},
  };
  return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, sizeof cases / sizeof cases[0]);
}
