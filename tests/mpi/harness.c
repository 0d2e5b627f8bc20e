#include "harness.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int my_rank;
int rank_count;

static const char* case_name = "(no case)";
static const char* skip_reason;

static void report(const char* format, va_list arguments) {
  char text[600];
  vsnprintf(text, sizeof text, format, arguments);
  char line[800];
  const int length = snprintf(line, sizeof line, "FAIL %s: rank %d of %d: %s\n", case_name, my_rank,
                              rank_count, text);
  if (write(STDERR_FILENO, line, (size_t)length) != length) perror("stderr");
  usleep(200000);  // launchers forward what was written before they kill, but not at once
  MPI_Abort(MPI_COMM_WORLD, 1);
  _exit(1);
}

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  report(format, arguments);
  va_end(arguments);
  abort();
}

void require(bool condition, const char* format, ...) {
  if (condition) return;
  va_list arguments;
  va_start(arguments, format);
  report(format, arguments);
  va_end(arguments);
}

void skip(const char* reason) {
  skip_reason = reason;
}

void* allocate(size_t bytes) {
  void* memory = malloc(bytes != 0 ? bytes : 1);
  if (memory == NULL) fail("no memory for %zu bytes; run fewer ranks", bytes);
  return memory;
}

static uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

uint64_t seed_of(int a, int b, int c, int d) {
  uint64_t seed = mixed((uint64_t)a + 0x9e3779b97f4a7c15u);
  seed = mixed(seed + (uint64_t)b);
  seed = mixed(seed + (uint64_t)c);
  return mixed(seed + (uint64_t)d);
}

// Cheap enough that checking 64 MiB is no burden, and a byte out of place shows.
static uint64_t word_at(uint64_t seed, size_t index) {
  return (seed + index * 0x9e3779b97f4a7c15u) * 0xd1342543de82ef95u;
}

void fill(void* buffer, size_t bytes, uint64_t seed) {
  unsigned char* out = buffer;
  size_t index = 0;
  for (; (index + 1) * 8 <= bytes; index++) {
    const uint64_t word = word_at(seed, index);
    memcpy(out + index * 8, &word, 8);
  }
  const uint64_t last = word_at(seed, index);
  memcpy(out + index * 8, &last, bytes % 8);
}

void expect(const void* buffer, size_t bytes, uint64_t seed, const char* what) {
  const unsigned char* in = buffer;
  for (size_t index = 0; index * 8 < bytes; index++) {
    const uint64_t word = word_at(seed, index);
    const size_t here = bytes - index * 8 < 8 ? bytes - index * 8 : 8;
    if (memcmp(in + index * 8, &word, here) == 0) continue;
    unsigned char wanted[8];
    memcpy(wanted, &word, 8);
    size_t first = 0;
    while (in[index * 8 + first] == wanted[first]) first++;
    fail("%s: byte %zu of %zu is 0x%02x, not 0x%02x", what, index * 8 + first, bytes,
         in[index * 8 + first], wanted[first]);
  }
}

void expect_bytes(const void* buffer, size_t bytes, unsigned char value, const char* what) {
  const unsigned char* in = buffer;
  for (size_t i = 0; i < bytes; i++) {
    if (in[i] != value)
      fail("%s: byte %zu of %zu is 0x%02x, not 0x%02x", what, i, bytes, in[i], value);
  }
}

uint64_t random_next(Random* random) {
  random->state += 0x9e3779b97f4a7c15u;
  return mixed(random->state);
}

int random_below(Random* random, int limit) {
  return (int)(random_next(random) % (uint64_t)limit);
}

void yield_core(void) {
  sched_yield();
}

int right_of_me(void) {
  return (my_rank + 1) % rank_count;
}
int left_of_me(void) {
  return (my_rank + rank_count - 1) % rank_count;
}

static bool is_named(int argc, char** argv, const char* prefix, const char* name) {
  for (int i = 1; i < argc; i++) {
    const size_t length = strlen(prefix);
    if (strncmp(argv[i], prefix, length) == 0 && strcmp(argv[i] + length, name) == 0) return true;
  }
  return false;
}

static bool is_wanted(int argc, char** argv, const char* name) {
  bool some_are_named = false;
  for (int i = 1; i < argc; i++) some_are_named = some_are_named || argv[i][0] != '-';
  return !is_named(argc, argv, "-", name) && (!some_are_named || is_named(argc, argv, "", name));
}

// The run wants messages to go through this library (tests/mpi/run.py sets it): a run on anything
// else would prove nothing. FI_PROVIDER and the like keep the MPI from using another.
static void require_provider(void) {
  const char* library = getenv("HAUL_TEST_PROVIDER_LIBRARY");
  if (library == NULL) return;
  FILE* maps = fopen("/proc/self/maps", "r");
  require(maps != NULL, "cannot read /proc/self/maps; mount /proc");
  char line[4096];
  bool found = false;
  while (fgets(line, sizeof line, maps) != NULL) found = found || strstr(line, library) != NULL;
  fclose(maps);
  require(found, "this MPI did not load the provider %s; see the provider path and its symbols",
          library);
}

static void say(const char* verb, const char* rest, const char* reason) {
  if (my_rank != 0) return;
  printf("%s %s%s%s\n", verb, rest, reason != NULL ? ": " : "", reason != NULL ? reason : "");
  fflush(stdout);
}

// A message that nobody received would be taken for one of the next case. The first barrier ends
// this case, the second keeps the next one from sending yet.
static void require_silence(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  int arrived = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &arrived, &status);
  if (arrived) {
    fail("a message from %d with tag %d is left over", status.MPI_SOURCE, status.MPI_TAG);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int run_cases(int argc, char** argv, int thread_level, const TestCase* cases, size_t count) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, thread_level, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
  require(rank_count >= 2, "these tests need two ranks or more");
  require_provider();
  int passed = 0;
  int skipped = 0;
  for (size_t i = 0; i < count; i++) {
    if (!is_wanted(argc, argv, cases[i].name)) continue;
    case_name = cases[i].name;
    skip_reason = NULL;
    say("begin", case_name, NULL);
    const double started = MPI_Wtime();
    if (provided < thread_level) {
      skip("the MPI offers a lower thread level");
    } else {
      cases[i].run();
    }
    require_silence();
    if (skip_reason != NULL) {
      skipped++;
      say("skip", case_name, skip_reason);
    } else {
      passed++;
      char seconds[40];
      snprintf(seconds, sizeof seconds, "%.2f s", MPI_Wtime() - started);
      say("ok", case_name, seconds);
    }
  }
  case_name = "(finalize)";
  MPI_Finalize();
  if (my_rank == 0) {
    printf("passed %d skipped %d\n", passed, skipped);
    fflush(stdout);
  }
  return 0;
}
