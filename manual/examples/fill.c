/* haul_fill, haul_test: a table gets its first value, and the program
 * looks from time to time whether it has. */
#include <haul/haul.h>
#include <stdio.h>

static double table[1 << 20];

int main(void) {
  double first = 0.5;
  uint64_t pattern;
  memcpy(&pattern, &first, sizeof pattern);
  haul_ticket ticket =
      haul_fill(table, pattern, sizeof pattern, sizeof table);
  int result;
  unsigned long looks = 1;
  while ((result = haul_test(ticket)) == 0) looks++;
  if (result < 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  printf("filled with %g, seen by look %lu\n", table[1], looks);
  return table[(1 << 20) - 1] != first;
}
