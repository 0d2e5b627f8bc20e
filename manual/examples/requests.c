/* haul_submit, haul_request_copy, haul_request_fill, haul_drain,
 * haul_request, haul_affinity, haul_operation: what is copied away
 * leaves the cache as it was, and only then is its source cleared. */
#include <haul/haul.h>
#include <stdio.h>

static int log_now[1 << 18], log_saved[1 << 18];

int main(void) {
  for (int i = 0; i < 1 << 18; i++) log_now[i] = i;
  haul_request both[2] = {
      haul_request_copy(log_saved, log_now, sizeof log_now),
      haul_request_fill(log_now, 0, 8, sizeof log_now)};
  both[0].dst_affinity = HAUL_NON_CACHEABLE; /* nobody reads it soon */
  both[1].flags = HAUL_FENCE; /* begins when the copy has ended */
  int taken = haul_submit(both, 2, NULL);
  if (taken != 2 || haul_drain() != 0) {
    fprintf(stderr, "%d taken: %s\n", taken, haul_last_error());
    return 1;
  }
  printf("saved %d, now %d\n", log_saved[7], log_now[7]);
  return log_saved[7] != 7 || log_now[7] != 0;
}
