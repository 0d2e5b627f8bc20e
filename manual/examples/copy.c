/* haul_copy, haul_wait, haul_ticket: the copy is made while the program
 * computes. */
#include <haul/haul.h>
#include <stdio.h>

static char from[16 << 20], to[16 << 20];

int main(void) {
  memset(from, 'h', sizeof from);
  haul_ticket ticket = haul_copy(to, from, sizeof to);
  double x = 1; /* compute what needs neither buffer */
  for (int i = 0; i < 1000000; i++) x = x * 0.999 + 1;
  if (haul_wait(ticket) != 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  printf("%.0f, and the last byte is %c\n", x, to[sizeof to - 1]);
  return to[sizeof to - 1] != 'h';
}
