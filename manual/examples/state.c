/* haul_wake, haul_query, haul_shutdown, haul_state: the mover is awake
 * before a burst begins. */
#include <haul/haul.h>
#include <stdio.h>

static char from[8 << 20], to[8 << 20];

int main(void) {
  if (haul_wake() != 0) printf("no mover: %s\n", haul_last_error());
  for (size_t at = 0; at < sizeof to; at += 1 << 20)
    haul_copy(to + at, from + at, 1 << 20);
  if (haul_drain() != 0) return 1;
  haul_state state = {.size = sizeof state};
  if (haul_query(&state) != 0) return 1;
  printf("%llu requests, %llu to a mover; %s\n",
         (unsigned long long)state.submitted,
         (unsigned long long)state.dedicated, state.mover_status);
  return haul_shutdown(); /* gives the core back before the end */
}
