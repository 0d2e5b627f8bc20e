/* haul_wait_for: the program does something else every millisecond
 * until the copy has ended. */
#include <haul/haul.h>
#include <stdio.h>

static char from[64 << 20], to[64 << 20];

int main(void) {
  int result, turns = 0;
  memset(from, 1, sizeof from);
  haul_ticket ticket = haul_copy(to, from, sizeof to);
  while ((result = haul_wait_for(ticket, 1000000)) == HAUL_ETIMEDOUT)
    turns++; /* draw a frame, answer a client, ... */
  if (result != 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  printf("done, after %d turns of something else\n", turns);
  return memcmp(from, to, sizeof to) != 0;
}
