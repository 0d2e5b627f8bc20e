/* A copy in the background: submit, compute, wait for what is touched, wait for all. */
#include <haul/haul.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { count = 4 << 20, first = 1024 }; /* 16 MiB of numbers, and how many of them are read early */

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, haul_last_error());
  return 1;
}

static uint64_t sum(const uint32_t* numbers, size_t n) {
  uint64_t total = 0;
  for (size_t i = 0; i < n; i++) total += numbers[i];
  return total;
}

/* Stands for what the program has to do anyway; it touches neither buffer. */
static uint32_t compute(void) {
  uint32_t x = 1;
  for (int i = 0; i < 1000000; i++) x = x * 1664525u + 1013904223u;
  return x;
}

int main(void) {
  uint32_t* from = malloc(count * sizeof *from);
  uint32_t* to = malloc(count * sizeof *to);
  if (from == NULL || to == NULL) return 1;
  for (uint32_t i = 0; i < count; i++) from[i] = i;

  /* Returns at once where a core is free; where none is, the copy is made here and now. Either way
   * the lines below are right. A wrong argument would show at the first test or wait. */
  haul_ticket ticket = haul_copy(to, from, count * sizeof *to);
  printf("computed %u while the bytes moved\n", compute());

  /* The first numbers are needed now: their chunks are moved first. */
  if (haul_wait_range(ticket, 0, first * sizeof *to) != 0) return fail("the first block");
  printf("the first %d numbers sum to %llu\n", first, (unsigned long long)sum(to, first));

  /* From here on all of `to` is visible, and `from` may be changed or freed. */
  if (haul_wait(ticket) != 0) return fail("the copy");
  printf("all %d numbers sum to %llu\n", count, (unsigned long long)sum(to, count));

  /* Filling works alike: a pattern of 1, 2, 4 or 8 bytes. */
  ticket = haul_fill(to, 7, sizeof *to, count * sizeof *to);
  if (haul_wait(ticket) != 0) return fail("the fill");
  printf("filled with 7 they sum to %llu\n", (unsigned long long)sum(to, count));

  /* What goes wrong is said by the ticket, with a sentence for people. */
  if (haul_wait(haul_copy(NULL, from, 64)) == HAUL_EINVAL) printf("a copy to NULL was refused\n");
  free(from);
  free(to);
  return 0;
}
