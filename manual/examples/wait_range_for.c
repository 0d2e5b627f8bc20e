/* haul_wait_range_for: the header of a message is wanted soon; until it
 * is there, the program does something else. */
#include <haul/haul.h>
#include <stdio.h>

enum { HEADER = 4096 };
static char from[64 << 20], to[64 << 20];

int main(void) {
  int result, turns = 0;
  memset(from, 1, sizeof from);
  haul_ticket ticket = haul_copy(to, from, sizeof to);
  while ((result = haul_wait_range_for(ticket, 0, HEADER, 20000)) ==
         HAUL_ETIMEDOUT)
    turns++; /* draw a frame, answer a client, ... */
  if (result != 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  printf("the header came after %d turns of something else\n", turns);
  if (memcmp(from, to, HEADER) != 0 || haul_wait(ticket) != 0) return 1;
  return memcmp(from, to, sizeof to) != 0;
}
