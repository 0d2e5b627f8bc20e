// Ranks that start processes: fork with a child that works and exits in every manner, exec, system,
// popen; beside messages under way. A child never calls MPI; its memory is its own.
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

extern char** environ;

static void require_exit(pid_t child, int wanted) {
  int status = 0;
  pid_t got = -1;
  do {
    got = waitpid(child, &status, 0);
  } while (got == -1 && errno == EINTR);
  require(got == child && WIFEXITED(status) && WEXITSTATUS(status) == wanted,
          "a child ended with status 0x%x, not with exit code %d", (unsigned)status, wanted);
}

static pid_t forked(void) {
  fflush(NULL);
  const pid_t child = fork();
  require(child >= 0, "cannot fork: %s", strerror(errno));
  return child;
}

typedef struct Exchange {
  unsigned char* out;
  unsigned char* in;
  int bytes;
  int round;
  MPI_Request requests[2];
} Exchange;

static Exchange start_exchange(int bytes, int round) {
  Exchange exchange = {allocate((size_t)bytes),
                       allocate((size_t)bytes),
                       bytes,
                       round,
                       {MPI_REQUEST_NULL, MPI_REQUEST_NULL}};
  fill(exchange.out, (size_t)bytes, seed_of(my_rank, bytes, round, 0));
  MPI_Irecv(exchange.in, bytes, MPI_BYTE, left_of_me(), 1, MPI_COMM_WORLD, &exchange.requests[0]);
  MPI_Isend(exchange.out, bytes, MPI_BYTE, right_of_me(), 1, MPI_COMM_WORLD, &exchange.requests[1]);
  return exchange;
}

static void finish_exchange(Exchange* exchange) {
  MPI_Waitall(2, exchange->requests, MPI_STATUSES_IGNORE);
  expect(exchange->in, (size_t)exchange->bytes,
         seed_of(left_of_me(), exchange->bytes, exchange->round, 0), "received across a fork");
  free(exchange->out);
  free(exchange->in);
}

static void exchange_all_sizes(int round) {
  const int sizes[] = {16, 4000, 60000, 1500000};
  for (int i = 0; i < 4; i++) {
    Exchange exchange = start_exchange(sizes[i], round);
    finish_exchange(&exchange);
  }
}

// As Python's multiprocessing does: a child that works on its own memory and leaves by _exit.
static void test_fork(void) {
  exchange_all_sizes(0);
  const int bytes = 300000;
  for (int round = 1; round <= 3; round++) {
    unsigned char* memory = allocate((size_t)bytes);
    fill(memory, (size_t)bytes, 1);
    const pid_t child = forked();
    if (child == 0) {
      unsigned char* other = malloc((size_t)bytes);
      if (other == NULL) _exit(2);
      memcpy(other, memory, (size_t)bytes);
      memset(memory, 0, (size_t)bytes);
      _exit(other[0] == memory[0]);
    }
    exchange_all_sizes(round);
    require_exit(child, 0);
    expect(memory, (size_t)bytes, 1, "a parent's memory that its child overwrote");
    free(memory);
  }
  exchange_all_sizes(4);
}

// The child writes over buffers of messages that are under way: over its own copies of them.
static void test_fork_during_messages(void) {
  const int sizes[] = {100, 20000, 4 << 20};
  for (int i = 0; i < 3; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    Exchange exchange = start_exchange(sizes[i], 10 + i);
    const pid_t child = forked();
    if (child == 0) {
      memset(exchange.out, 0x55, (size_t)exchange.bytes);
      memset(exchange.in, 0x55, (size_t)exchange.bytes);
      _exit(3);
    }
    finish_exchange(&exchange);
    require_exit(child, 3);
  }
  exchange_all_sizes(20);
}

// Messages into the same buffers before and after a fork, while the child lives: the child sees the
// old bytes.
static void test_child_keeps_its_bytes(void) {
  const int bytes = 2 << 20;
  unsigned char* in = allocate((size_t)bytes);
  unsigned char* out = allocate((size_t)bytes);
  pid_t child = -1;
  int go[2] = {-1, -1};
  require(pipe(go) == 0, "cannot make a pipe");
  for (int round = 0; round < 6; round++) {
    fill(out, (size_t)bytes, seed_of(my_rank, 30, round, 0));
    MPI_Sendrecv(out, bytes, MPI_BYTE, right_of_me(), 1, in, bytes, MPI_BYTE, left_of_me(), 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(in, (size_t)bytes, seed_of(left_of_me(), 30, round, 0), "received beside a child");
    if (round != 2) continue;
    child = forked();
    if (child == 0) {
      char token = 0;
      close(go[1]);
      if (read(go[0], &token, 1) != 0) _exit(1);  // the parent closes its end
      unsigned char* wanted = malloc((size_t)bytes);
      if (wanted == NULL) _exit(1);
      fill(wanted, (size_t)bytes, seed_of(left_of_me(), 30, 2, 0));
      const int received_differs = memcmp(in, wanted, (size_t)bytes) != 0;
      fill(wanted, (size_t)bytes, seed_of(my_rank, 30, 2, 0));
      const int sent_differs = memcmp(out, wanted, (size_t)bytes) != 0;
      _exit(received_differs ? 4 : (sent_differs ? 5 : 0));
    }
  }
  close(go[1]);
  close(go[0]);
  require_exit(child, 0);
  free(in);
  free(out);
}

// A child that leaves by exit() runs what libraries have registered for the end of the process.
static void test_child_exits(void) {
  exchange_all_sizes(40);
  const pid_t child = forked();
  if (child == 0) exit(6);
  require_exit(child, 6);
  exchange_all_sizes(41);
}

static void test_exec(void) {
  const pid_t child = forked();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "exit 7", (char*)NULL);
    _exit(127);
  }
  exchange_all_sizes(50);
  require_exit(child, 7);
  pid_t spawned = -1;
  char* const words[] = {"sh", "-c", "exit 8", NULL};
  require(posix_spawn(&spawned, "/bin/sh", NULL, NULL, words, environ) == 0, "cannot spawn sh");
  exchange_all_sizes(51);
  require_exit(spawned, 8);
}

static void test_system(void) {
  const int status = system("exit 9");
  require(WIFEXITED(status) && WEXITSTATUS(status) == 9, "system() returned 0x%x",
          (unsigned)status);
  exchange_all_sizes(60);
  FILE* pipe_from_shell = popen("echo $((6 * 7))", "r");
  require(pipe_from_shell != NULL, "popen() failed: %s", strerror(errno));
  int answer = 0;
  require(fscanf(pipe_from_shell, "%d", &answer) == 1 && answer == 42, "the shell says %d", answer);
  pclose(pipe_from_shell);
  exchange_all_sizes(61);
}

// Children of children, several at a time.
static void test_many_children(void) {
  enum { count = 6 };
  pid_t children[count];
  for (int i = 0; i < count; i++) {
    children[i] = forked();
    if (children[i] == 0) {
      const pid_t grandchild = fork();
      if (grandchild == 0) _exit(i);
      int status = 0;
      if (waitpid(grandchild, &status, 0) != grandchild) _exit(99);
      _exit(WEXITSTATUS(status) + 1);
    }
    Exchange exchange = start_exchange(70000, 70 + i);
    finish_exchange(&exchange);
  }
  for (int i = 0; i < count; i++) require_exit(children[i], i + 1);
  exchange_all_sizes(80);
}

int main(int argc, char** argv) {
  const TestCase cases[] = {
      {"fork", test_fork},
      {"fork_during_messages", test_fork_during_messages},
      {"child_keeps_its_bytes", test_child_keeps_its_bytes},
      {"child_exits", test_child_exits},
      {"exec", test_exec},
      {"system", test_system},
      {"many_children", test_many_children},
  };
  return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, sizeof cases / sizeof cases[0]);
}
