/* haul_alloc, haul_free: buffers that the node's service and messages
 * can map. */
#include <haul/haul.h>
#include <stdio.h>

int main(void) {
  size_t bytes = 8 << 20;
  char* from = haul_alloc(bytes);
  char* to = haul_alloc(bytes);
  if (from == NULL || to == NULL) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  from[bytes - 1] = 1; /* the rest reads as zeroes */
  if (haul_wait(haul_copy(to, from, bytes)) != 0) return 1;
  printf("%d %d\n", to[0], to[bytes - 1]);
  int copied = to[bytes - 1];
  haul_free(from); /* no copy uses them any more */
  haul_free(to);
  return copied != 1;
}
