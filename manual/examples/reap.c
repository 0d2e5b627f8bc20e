/* haul_reap, haul_reap_eventfd, haul_reap_arm, haul_completion,
 * haul_callback: an event loop sleeps until copies have ended. */
#include <haul/haul.h>
#include <poll.h>
#include <stdio.h>

enum { COPIES = 4, BYTES = 4 << 20 };
static char from[BYTES], to[COPIES][BYTES];

static void ended(const haul_completion* completion, void* count) {
  if (completion->status == 0) ++*(int*)count;
}

int main(void) {
  int good = 0, reaped = 0;
  haul_completion entries[COPIES];
  struct pollfd loop = {haul_reap_eventfd(), POLLIN, 0};
  for (int i = 0; i < COPIES; i++) {
    haul_request request = haul_request_copy(to[i], from, BYTES);
    request.flags = HAUL_COMPLETE;
    request.callback = ended;
    request.callback_context = &good;
    if (haul_submit(&request, 1, NULL) != 1) {
      fprintf(stderr, "%s\n", haul_last_error());
      return 1;
    }
  }
  while (reaped < COPIES) {
    int count = haul_reap(entries, COPIES);
    if (count < 0) return 1;
    reaped += count;
    if (count == 0 && haul_reap_arm() == 0) poll(&loop, 1, -1);
  }
  printf("%d of %d copies went well\n", good, reaped);
  return good != COPIES;
}
