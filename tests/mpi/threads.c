// MPI_THREAD_MULTIPLE: threads on communicators of their own and on one they share, probing,
// waiting for each other's requests, in collectives and in windows.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "windows.h"

enum { thread_count = 4 };

typedef struct Worker {
  int index;
  MPI_Comm comm;
  Window* window;
  void* shared;
} Worker;

static void run_threads(void* (*work)(void*), Worker* workers) {
  pthread_t threads[thread_count];
  for (int t = 0; t < thread_count; t++) {
    workers[t].index = t;
    require(pthread_create(&threads[t], NULL, work, &workers[t]) == 0, "cannot start a thread");
  }
  for (int t = 0; t < thread_count; t++) pthread_join(threads[t], NULL);
}

// A ring of exchanges of mixed sizes; the tags are this thread's.
static void exchange(MPI_Comm comm, int thread, int rounds) {
  enum { most = 100000 };
  unsigned char* out = allocate(most);
  unsigned char* in = allocate(most);
  for (int round = 0; round < rounds; round++) {
    const int kinds[] = {8, 500, 6000, most};
    const int bytes = kinds[(round + thread) % 4];
    fill(out, (size_t)bytes, seed_of(my_rank, thread, round, 0));
    MPI_Request requests[2];
    MPI_Irecv(in, most, MPI_BYTE, left_of_me(), thread, comm, &requests[0]);
    MPI_Isend(out, bytes, MPI_BYTE, right_of_me(), thread, comm, &requests[1]);
    MPI_Status statuses[2];
    MPI_Waitall(2, requests, statuses);
    int got = -1;
    MPI_Get_count(&statuses[0], MPI_BYTE, &got);
    require(got == bytes, "thread %d received %d bytes, not %d", thread, got, bytes);
    expect(in, (size_t)bytes, seed_of(left_of_me(), thread, round, 0), "received by a thread");
  }
  free(out);
  free(in);
}

static void* exchange_alone(void* argument) {
  const Worker* worker = argument;
  exchange(worker->comm, worker->index, 40);
  return NULL;
}

static void test_own_communicators(void) {
  Worker workers[thread_count];
  for (int t = 0; t < thread_count; t++) MPI_Comm_dup(MPI_COMM_WORLD, &workers[t].comm);
  run_threads(exchange_alone, workers);
  for (int t = 0; t < thread_count; t++) MPI_Comm_free(&workers[t].comm);
}

static void test_shared_communicator(void) {
  Worker workers[thread_count];
  for (int t = 0; t < thread_count; t++) workers[t].comm = MPI_COMM_WORLD;
  run_threads(exchange_alone, workers);
}

enum { probed_messages = 60 };

// Two threads send, two take whatever has arrived by matched probes.
static void* send_or_probe(void* argument) {
  Worker* worker = argument;
  int* seen = worker->shared;
  for (int i = 0; i < probed_messages / 2; i++) {
    if (worker->index < 2) {
      const int number = worker->index * probed_messages / 2 + i;
      int* message = allocate((size_t)(number * 50 + 1) * sizeof(int));
      for (int k = 0; k <= number * 50; k++) message[k] = number;
      MPI_Send(message, number * 50 + 1, MPI_INT, right_of_me(), number, worker->comm);
      free(message);
    } else {
      MPI_Message handle;
      MPI_Status status;
      MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, worker->comm, &handle, &status);
      int count = 0;
      MPI_Get_count(&status, MPI_INT, &count);
      int* message = allocate((size_t)count * sizeof(int));
      MPI_Mrecv(message, count, MPI_INT, &handle, &status);
      require(count == status.MPI_TAG * 50 + 1, "message %d has %d ints", status.MPI_TAG, count);
      for (int k = 0; k < count; k++) {
        require(message[k] == status.MPI_TAG, "int %d of message %d is %d", k, status.MPI_TAG,
                message[k]);
      }
      __atomic_fetch_add(&seen[status.MPI_TAG], 1, __ATOMIC_RELAXED);
      free(message);
    }
  }
  return NULL;
}

static void test_matched_probes(void) {
  int seen[probed_messages] = {0};
  Worker workers[thread_count];
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int t = 0; t < thread_count; t++) {
    workers[t].comm = comm;
    workers[t].shared = seen;
  }
  run_threads(send_or_probe, workers);
  for (int i = 0; i < probed_messages; i++) {
    require(seen[i] == 1, "message %d was taken %d times", i, seen[i]);
  }
  MPI_Comm_free(&comm);
}

static void* collectives(void* argument) {
  const Worker* worker = argument;
  for (int round = 0; round < 15; round++) {
    int sum = 0;
    const int mine = my_rank + worker->index * 100 + round;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, worker->comm);
    const int wanted =
        rank_count * (worker->index * 100 + round) + rank_count * (rank_count - 1) / 2;
    require(sum == wanted, "thread %d: the sum is %d, not %d", worker->index, sum, wanted);
    MPI_Barrier(worker->comm);
  }
  return NULL;
}

static void test_collectives(void) {
  Worker workers[thread_count];
  for (int t = 0; t < thread_count; t++) MPI_Comm_dup(MPI_COMM_WORLD, &workers[t].comm);
  run_threads(collectives, workers);
  for (int t = 0; t < thread_count; t++) MPI_Comm_free(&workers[t].comm);
}

// One thread sits in a receive that only the other's later work can satisfy.
static void* wait_or_serve(void* argument) {
  const Worker* worker = argument;
  int value = -1;
  if (worker->index == 0) {
    MPI_Recv(&value, 1, MPI_INT, left_of_me(), 50, worker->comm, MPI_STATUS_IGNORE);
    require(value == 51, "the waiting thread received %d", value);
  } else if (worker->index == 1) {
    exchange(worker->comm, 60, 20);
    value = 51;
    MPI_Send(&value, 1, MPI_INT, right_of_me(), 50, worker->comm);
  }
  return NULL;
}

static void test_blocked_thread(void) {
  Worker workers[thread_count];
  for (int t = 0; t < thread_count; t++) workers[t].comm = MPI_COMM_WORLD;
  run_threads(wait_or_serve, workers);
}

// Some threads start requests, others complete them.
enum { handed_over = 16 };

typedef struct Handover {
  MPI_Request requests[2 * handed_over];
  int in[handed_over];
  int out[handed_over];
  int started;  // how many pairs; written by one thread, read by another
} Handover;

static void* start_or_complete(void* argument) {
  const Worker* worker = argument;
  Handover* handover = worker->shared;
  const int tag = 70 + worker->index / 2;
  for (int i = 0; i < handed_over; i++) {
    if (worker->index % 2 == 0) {
      handover->out[i] = my_rank * 100 + i;
      MPI_Irecv(&handover->in[i], 1, MPI_INT, left_of_me(), tag, worker->comm,
                &handover->requests[2 * i]);
      MPI_Isend(&handover->out[i], 1, MPI_INT, right_of_me(), tag, worker->comm,
                &handover->requests[2 * i + 1]);
      __atomic_store_n(&handover->started, i + 1, __ATOMIC_RELEASE);
    } else {
      while (__atomic_load_n(&handover->started, __ATOMIC_ACQUIRE) <= i) yield_core();
      MPI_Waitall(2, &handover->requests[2 * i], MPI_STATUSES_IGNORE);
      require(handover->in[i] == left_of_me() * 100 + i, "request %d received %d", i,
              handover->in[i]);
    }
  }
  return NULL;
}

static void test_others_requests(void) {
  Handover handovers[thread_count / 2];
  memset(handovers, 0, sizeof handovers);
  Worker workers[thread_count];
  for (int t = 0; t < thread_count; t++) {
    workers[t].comm = MPI_COMM_WORLD;
    workers[t].shared = &handovers[t / 2];
  }
  run_threads(start_or_complete, workers);
}

static void* access_window(void* argument) {
  Worker* worker = argument;
  enum { bytes = 3000 };
  const Window* window = worker->window;
  const int right = right_in(window);
  const MPI_Aint place = 64 + worker->index * bytes;
  unsigned char out[bytes];
  unsigned char in[bytes];
  for (int round = 0; round < 10; round++) {
    fill(out, bytes, seed_of(my_rank, worker->index, round, 1));
    MPI_Put(out, bytes, MPI_BYTE, right, place, bytes, MPI_BYTE, window->win);
    MPI_Win_flush(right, window->win);
    MPI_Get(in, bytes, MPI_BYTE, right, place, bytes, MPI_BYTE, window->win);
    MPI_Win_flush(right, window->win);
    expect(in, bytes, seed_of(my_rank, worker->index, round, 1), "got back by a thread");
    const long one = 1;
    long before = -1;
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, window->win);
    MPI_Win_flush(0, window->win);
    require(before >= 0 && before < 10L * thread_count * rank_count, "the counter was %ld", before);
  }
  return NULL;
}

static void test_windows(void) {
  Window window;
  if (!open_window(&window, window_create, 64 + thread_count * 3000)) {
    skip("this MPI makes no window of this kind with threads");
    return;
  }
  Worker workers[thread_count];
  for (int t = 0; t < thread_count; t++) workers[t].window = &window;
  MPI_Win_lock_all(0, window.win);
  run_threads(access_window, workers);
  MPI_Win_unlock_all(window.win);
  MPI_Barrier(window.comm);
  long sum = 0;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win);
  MPI_Get(&sum, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window.win);
  MPI_Win_unlock(0, window.win);
  require(sum == 10L * thread_count * rank_count, "the counter is %ld", sum);
  close_window(&window);
}

int main(int argc, char** argv) {
  const TestCase cases[] = {
      {"own_communicators", test_own_communicators},
      {"shared_communicator", test_shared_communicator},
      {"matched_probes", test_matched_probes},
      {"collectives", test_collectives},
      {"blocked_thread", test_blocked_thread},
      {"others_requests", test_others_requests},
      {"windows", test_windows},
  };
  return run_cases(argc, argv, MPI_THREAD_MULTIPLE, cases, sizeof cases / sizeof cases[0]);
}
