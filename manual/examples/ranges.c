/* haul_wait_range, haul_test_range, haul_progress: a consumer begins
 * with the first blocks before the copy ends. */
#include <haul/haul.h>
#include <stdio.h>

enum { PART = 1 << 20, PARTS = 16 };
static unsigned char from[PARTS * PART], to[PARTS * PART];

int main(void) {
  unsigned long sum = 0;
  size_t good = 0;
  memset(from, 3, sizeof from);
  haul_ticket ticket = haul_copy(to, from, sizeof to);
  for (size_t at = 0; at < sizeof to; at += PART) {
    if (haul_test_range(ticket, at, PART) != 1 &&
        haul_wait_range(ticket, at, PART) != 0)
      break;
    for (size_t i = at; i < at + PART; i++) sum += to[i];
  }
  if (haul_wait(ticket) != 0 || haul_progress(ticket, &good) < 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  printf("%zu bytes arrived; they sum to %lu\n", good, sum);
  return sum != 3ul * sizeof to;
}
