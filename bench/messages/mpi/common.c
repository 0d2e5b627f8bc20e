// Clock, pinning, failure.
#define _GNU_SOURCE
#include "bench/messages/mpi/common.h"

#include <mpi.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Each launcher has a variable of its own for the rank.
static int rank_before_init(void) {
  const char* names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
  for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char* text = getenv(names[i]);
    if (text != NULL) return atoi(text);
  }
  fail("the launcher does not tell the rank (%s, %s or %s)", names[0], names[1], names[2]);
}

void pin_to(const char* cpus) {
  int list[CPU_SETSIZE], count = 0;
  char* end;
  for (const char* at = cpus; *at != 0 && count < CPU_SETSIZE; at = *end == ',' ? end + 1 : end) {
    list[count++] = (int)strtol(at, &end, 10);
    if (end == at) fail("'%s' is no list of CPUs, such as 0,1", cpus);
  }
  if (count == 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)list[rank_before_init() % count], &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail("a rank cannot be pinned to CPUs %s", cpus);
}

void fail(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "error: %s\n", text);
  fflush(stderr);
  int running = 0, ended = 0;
  MPI_Initialized(&running);
  MPI_Finalized(&ended);
  if (running && !ended) MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}

double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

void* allocate(size_t bytes) {
  const size_t line = 64, rounded = (bytes / line + 1) * line;
  void* at = aligned_alloc(line, rounded);
  if (at == NULL) fail("no memory for %zu bytes; choose a smaller class or size", bytes);
  return memset(at, 0, rounded);
}
