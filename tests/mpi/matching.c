// Which message meets which receive: probes, wildcards, order, cancelled receives, truncation.
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void send_bytes(int bytes, int to, int tag, uint64_t seed) {
  unsigned char* data = allocate((size_t)bytes);
  fill(data, (size_t)bytes, seed);
  MPI_Send(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD);
  free(data);
}

static void require_status(const MPI_Status* status, int source, int tag, int bytes) {
  int count = -1;
  MPI_Get_count(status, MPI_BYTE, &count);
  require(status->MPI_SOURCE == source && status->MPI_TAG == tag && count == bytes,
          "status says source %d tag %d bytes %d, not %d %d %d", status->MPI_SOURCE,
          status->MPI_TAG, count, source, tag, bytes);
}

static const int sizes[] = {0, 1, 40, 900, 5000, 20000, 70000, 600000};
enum { size_count = sizeof sizes / sizeof sizes[0] };

// Probing by each call and by wildcards and names; the probed message is then received whole.
static void test_probe(void) {
  for (int way = 0; way < 4; way++) {
    const int source = way % 2 == 0 ? MPI_ANY_SOURCE : left_of_me();
    for (int i = 0; i < size_count; i++) {
      const int tag = way % 2 == 0 ? MPI_ANY_TAG : i;
      unsigned char* out = allocate((size_t)sizes[i]);
      fill(out, (size_t)sizes[i], seed_of(1, my_rank, way, i));
      MPI_Request request;
      MPI_Isend(out, sizes[i], MPI_BYTE, right_of_me(), i, MPI_COMM_WORLD, &request);
      MPI_Status status;
      int found = way < 2;
      if (way < 2) MPI_Probe(source, tag, MPI_COMM_WORLD, &status);
      while (!found) {
        MPI_Iprobe(source, tag, MPI_COMM_WORLD, &found, &status);
        yield_core();
      }
      require_status(&status, left_of_me(), i, sizes[i]);
      unsigned char* in = allocate((size_t)sizes[i]);
      MPI_Recv(in, sizes[i], MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
      expect(in, (size_t)sizes[i], seed_of(1, left_of_me(), way, i), "probed, then received");
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      free(in);
      free(out);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  int found = 1;
  MPI_Iprobe(left_of_me(), 12345, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  require(!found, "a probe found a message that nobody sent");
}

// A message taken by a matched probe is out of the queue: the next receive gets the one behind it.
static void test_matched_probe(void) {
  for (int i = 0; i < size_count; i++) {
    const int bytes = sizes[i];
    MPI_Request requests[2];
    unsigned char* out[2];
    for (int k = 0; k < 2; k++) {
      out[k] = allocate((size_t)bytes);
      fill(out[k], (size_t)bytes, seed_of(2, my_rank, i, k));
      MPI_Isend(out[k], bytes, MPI_BYTE, right_of_me(), 4, MPI_COMM_WORLD, &requests[k]);
    }
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    int found = i % 2 == 0;
    if (found) MPI_Mprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &message, &status);
    while (!found)
      MPI_Improbe(left_of_me(), MPI_ANY_TAG, MPI_COMM_WORLD, &found, &message, &status);
    require_status(&status, left_of_me(), 4, bytes);
    unsigned char* first = allocate((size_t)bytes);
    unsigned char* second = allocate((size_t)bytes);
    MPI_Recv(second, bytes, MPI_BYTE, left_of_me(), 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(second, (size_t)bytes, seed_of(2, left_of_me(), i, 1), "behind the matched one");
    if (i % 2 == 0) {
      MPI_Mrecv(first, bytes, MPI_BYTE, &message, &status);
    } else {
      MPI_Request request;
      MPI_Imrecv(first, bytes, MPI_BYTE, &message, &request);
      MPI_Wait(&request, &status);
    }
    require(message == MPI_MESSAGE_NULL, "a received message's handle is not null");
    require_status(&status, left_of_me(), 4, bytes);
    expect(first, (size_t)bytes, seed_of(2, left_of_me(), i, 0), "the matched one");
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < 2; k++) free(out[k]);
    free(first);
    free(second);
  }
  MPI_Message none = MPI_MESSAGE_NULL;
  MPI_Status status;
  MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &none, &status);
  require(none == MPI_MESSAGE_NO_PROC, "a matched probe of MPI_PROC_NULL gives another message");
  MPI_Mrecv(NULL, 0, MPI_BYTE, &none, &status);
  require_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

// Every rank receives from all others, from whomever, and each sender's messages in order.
static void test_any_source(void) {
  enum { per_sender = 60 };
  MPI_Request* sends = allocate((size_t)(rank_count * per_sender) * sizeof *sends);
  unsigned char** out = allocate((size_t)(rank_count * per_sender) * sizeof *out);
  int pending = 0;
  for (int k = 0; k < per_sender; k++) {
    for (int to = 0; to < rank_count; to++) {
      if (to == my_rank) continue;
      const int bytes = k % 20 == 19 ? 70000 : 16 * k;
      out[pending] = allocate((size_t)bytes);
      fill(out[pending], (size_t)bytes, seed_of(3, my_rank, to, k));
      MPI_Isend(out[pending], bytes, MPI_BYTE, to, k % 3, MPI_COMM_WORLD, &sends[pending]);
      pending++;
    }
  }
  int* next = calloc((size_t)rank_count, sizeof *next);
  unsigned char* in = allocate(70000);
  for (int k = 0; k < (rank_count - 1) * per_sender; k++) {
    MPI_Status status;
    MPI_Recv(in, 70000, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    const int from = status.MPI_SOURCE;
    const int index = next[from]++;
    const int bytes = index % 20 == 19 ? 70000 : 16 * index;
    require_status(&status, from, index % 3, bytes);
    expect(in, (size_t)bytes, seed_of(3, from, my_rank, index), "received from any source");
  }
  MPI_Waitall(pending, sends, MPI_STATUSES_IGNORE);
  for (int i = 0; i < pending; i++) free(out[i]);
  free(in);
  free(next);
  free(out);
  free(sends);
}

// Receives match in the order they were posted, wildcards and names among each other.
static void test_posted_order(void) {
  enum { count = 6 };
  const int tags[count] = {MPI_ANY_TAG, 5, MPI_ANY_TAG, 6, 5, MPI_ANY_TAG};
  const int sources[count] = {MPI_ANY_SOURCE, left_of_me(),   left_of_me(),
                              MPI_ANY_SOURCE, MPI_ANY_SOURCE, left_of_me()};
  // Tag 6 meets the first; 5, 5: the second and third; 6: the fourth; 5: the fifth; 9: the last.
  const int sent_tags[count] = {6, 5, 5, 6, 5, 9};
  for (int bytes = 4; bytes <= 400000; bytes *= 10) {
    MPI_Request requests[count];
    unsigned char* in[count];
    for (int i = 0; i < count; i++) {
      in[i] = allocate((size_t)bytes);
      MPI_Irecv(in[i], bytes, MPI_BYTE, sources[i], tags[i], MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
      send_bytes(bytes, right_of_me(), sent_tags[i], seed_of(4, my_rank, bytes, i));
    }
    MPI_Status statuses[count];
    MPI_Waitall(count, requests, statuses);
    for (int i = 0; i < count; i++) {
      require_status(&statuses[i], left_of_me(), sent_tags[i], bytes);
      expect(in[i], (size_t)bytes, seed_of(4, left_of_me(), bytes, i), "by order of posting");
      free(in[i]);
    }
  }
}

// The largest tags, and communicators with the same ranks and tags, keep messages apart.
static void test_tags_and_communicators(void) {
  int* upper = NULL;
  int found = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &found);
  require(found && *upper >= 32767, "the upper bound of tags is missing or too low");
  enum { comm_count = 5, tag_count = 4 };
  const int tags[tag_count] = {0, 1, *upper - 1, *upper};
  MPI_Comm comms[comm_count] = {MPI_COMM_WORLD};
  for (int c = 1; c < comm_count; c++) MPI_Comm_dup(comms[c - 1], &comms[c]);
  int out[comm_count][tag_count];
  MPI_Request requests[comm_count * tag_count];
  for (int c = 0; c < comm_count; c++) {
    for (int t = 0; t < tag_count; t++) {
      out[c][t] = my_rank * 1000 + c * 10 + t;
      MPI_Isend(&out[c][t], 1, MPI_INT, right_of_me(), tags[t], comms[c],
                &requests[c * tag_count + t]);
    }
  }
  for (int c = comm_count - 1; c >= 0; c--) {
    for (int t = tag_count - 1; t >= 0; t--) {
      int in = -1;
      MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, tags[t], comms[c], MPI_STATUS_IGNORE);
      require(in == left_of_me() * 1000 + c * 10 + t, "communicator %d tag %d received %d", c,
              tags[t], in);
    }
  }
  MPI_Waitall(comm_count * tag_count, requests, MPI_STATUSES_IGNORE);
  for (int c = 1; c < comm_count; c++) MPI_Comm_free(&comms[c]);
}

// A large message that waits for its receive holds up nothing behind it.
static void test_no_head_of_line_blocking(void) {
  enum { waiting = 12 };
  const int large = 2 << 20;
  unsigned char* out[waiting];
  MPI_Request requests[waiting];
  for (int i = 0; i < waiting; i++) {
    out[i] = allocate((size_t)large);
    fill(out[i], (size_t)large, seed_of(5, my_rank, i, 0));
    MPI_Isend(out[i], large, MPI_BYTE, right_of_me(), i, MPI_COMM_WORLD, &requests[i]);
  }
  for (int k = 0; k < 100; k++) send_bytes(k, right_of_me(), 1000, seed_of(5, my_rank, 99, k));
  unsigned char* in = allocate((size_t)large);
  for (int k = 0; k < 100; k++) {
    MPI_Recv(in, k, MPI_BYTE, left_of_me(), 1000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(in, (size_t)k, seed_of(5, left_of_me(), 99, k), "small, behind large ones");
  }
  for (int i = waiting - 1; i >= 0; i--) {
    MPI_Recv(in, large, MPI_BYTE, left_of_me(), i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(in, (size_t)large, seed_of(5, left_of_me(), i, 0), "large, received late");
  }
  MPI_Waitall(waiting, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < waiting; i++) free(out[i]);
  free(in);
}

// Cancelled receives take no message; one that has matched cannot be cancelled.
static void test_cancel(void) {
  enum { count = 40 };
  MPI_Request requests[count];
  int in[count];
  for (int i = 0; i < count; i++) {
    in[i] = -1;
    MPI_Irecv(&in[i], 1, MPI_INT, i % 3 == 0 ? MPI_ANY_SOURCE : left_of_me(), i, MPI_COMM_WORLD,
              &requests[i]);
  }
  for (int i = 0; i < count; i += 2) {
    MPI_Status status;
    int cancelled = 0;
    MPI_Cancel(&requests[i]);
    MPI_Wait(&requests[i], &status);
    MPI_Test_cancelled(&status, &cancelled);
    require(cancelled, "receive %d was not cancelled though nobody had sent", i);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < count; i++) {
    const int value = my_rank * 1000 + i;
    MPI_Send(&value, 1, MPI_INT, right_of_me(), i, MPI_COMM_WORLD);
  }
  for (int i = 0; i < count; i++) {
    MPI_Status status;
    int cancelled = 1;
    if (i % 2 == 0) {
      require(in[i] == -1, "a cancelled receive took a message");
      MPI_Recv(&in[i], 1, MPI_INT, left_of_me(), i, MPI_COMM_WORLD, &status);
    } else {
      int done = 0;
      while (!done) {
        MPI_Request_get_status(requests[i], &done, MPI_STATUS_IGNORE);
        yield_core();
      }
      MPI_Cancel(&requests[i]);
      MPI_Wait(&requests[i], &status);
      MPI_Test_cancelled(&status, &cancelled);
      require(!cancelled, "receive %d was cancelled after it was done", i);
    }
    require(in[i] == left_of_me() * 1000 + i, "receive %d got %d", i, in[i]);
  }
}

// A persistent receive can be started again after its cancel.
static void test_cancel_persistent(void) {
  MPI_Request persistent;
  int value = -1;
  MPI_Recv_init(&value, 1, MPI_INT, left_of_me(), 1, MPI_COMM_WORLD, &persistent);
  MPI_Start(&persistent);
  MPI_Cancel(&persistent);
  MPI_Wait(&persistent, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);  // nobody has sent before all have cancelled
  MPI_Start(&persistent);
  MPI_Send(&my_rank, 1, MPI_INT, right_of_me(), 1, MPI_COMM_WORLD);
  MPI_Wait(&persistent, MPI_STATUS_IGNORE);
  require(value == left_of_me(), "a persistent receive after its cancel got %d", value);
  MPI_Request_free(&persistent);
}

// A message longer than its buffer is an error of that receive alone and writes nothing beyond the
// buffer.
static void truncate_message(MPI_Comm comm, int bytes, int space, bool posted) {
  unsigned char* out = allocate((size_t)bytes);
  unsigned char* in = allocate((size_t)bytes);
  memset(in, 0xdd, (size_t)bytes);
  fill(out, (size_t)bytes, 1);
  MPI_Request receive = MPI_REQUEST_NULL;
  MPI_Request sends[2];
  if (posted) MPI_Irecv(in, space, MPI_BYTE, left_of_me(), 1, comm, &receive);
  MPI_Barrier(comm);
  MPI_Isend(out, bytes, MPI_BYTE, right_of_me(), 1, comm, &sends[0]);
  MPI_Isend(out, bytes, MPI_BYTE, right_of_me(), 1, comm, &sends[1]);
  MPI_Barrier(comm);
  const int code = posted ? MPI_Wait(&receive, MPI_STATUS_IGNORE)
                          : MPI_Recv(in, space, MPI_BYTE, left_of_me(), 1, comm, MPI_STATUS_IGNORE);
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  require(class == MPI_ERR_TRUNCATE, "%d bytes into %d (%s): error class %d, not MPI_ERR_TRUNCATE",
          bytes, space, posted ? "posted" : "unexpected", class);
  expect_bytes(in + space, (size_t)(bytes - space), 0xdd, "beyond a truncated message");
  MPI_Recv(in, bytes, MPI_BYTE, left_of_me(), 1, comm, MPI_STATUS_IGNORE);
  expect(in, (size_t)bytes, 1, "behind a truncated message");
  MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
  free(in);
  free(out);
}

static void truncate_each(const int* sizes_of_messages, int count, int divisor) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  // Whether an error in MPI_Wait belongs to the request's communicator depends on the MPI and its
  // version.
  const MPI_Comm all[] = {comm, MPI_COMM_WORLD, MPI_COMM_SELF};
  for (int i = 0; i < 3; i++) MPI_Comm_set_errhandler(all[i], MPI_ERRORS_RETURN);
  for (int i = 0; i < count; i++) {
    const int bytes = sizes_of_messages[i];
    truncate_message(comm, bytes, bytes / divisor, true);
    truncate_message(comm, bytes, bytes / divisor, false);
  }
  for (int i = 1; i < 3; i++) MPI_Comm_set_errhandler(all[i], MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
}

static void test_truncation(void) {
  const int some[] = {2, 64, 3000, 9000, 100000, 2000000};
  truncate_each(some, 6, 2);
}

// Intel MPI reports no error natively: a case of its own.
static void test_truncation_to_nothing(void) {
  const int some[] = {1, 5000, 500000};
  truncate_each(some, 3, 1000000);
}

int main(int argc, char** argv) {
  const TestCase cases[] = {
      {"probe", test_probe},
      {"matched_probe", test_matched_probe},
      {"any_source", test_any_source},
      {"posted_order", test_posted_order},
      {"tags_and_communicators", test_tags_and_communicators},
      {"no_head_of_line_blocking", test_no_head_of_line_blocking},
      {"cancel", test_cancel},
      {"cancel_persistent", test_cancel_persistent},
      {"truncation", test_truncation},
      {"truncation_to_nothing", test_truncation_to_nothing},
  };
  return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, sizeof cases / sizeof cases[0]);
}
