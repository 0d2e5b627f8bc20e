/* haul in an event loop: completions arrive at an epoll descriptor beside everything else. */
#include <haul/haul.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { copies = 24, copy_bytes = 256 * 1024, batch = 8 };

struct work {
  unsigned char* from;
  unsigned char* to;
  int done, sound;
};

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, haul_last_error());
  return 1;
}

/* Runs inside haul_reap(), on this thread. Copies end in any order; user_data says which it was. */
static void finished(const haul_completion* completion, void* context) {
  struct work* work = context;
  size_t at = (size_t)completion->user_data * copy_bytes;
  work->done++;
  work->sound += completion->status == 0 && work->to[at] == completion->user_data &&
                 work->to[at + copy_bytes - 1] == completion->user_data;
}

/* Takes what is there and arms the descriptor for what is not. An entry may arrive between the last
 * reap and the arming: then arming answers 1, nothing will be signalled, and there is more to reap.
 */
static int reap_all(void) {
  haul_completion entries[batch];
  int armed;
  do {
    while (haul_reap(entries, batch) > 0) continue;
    armed = haul_reap_arm();
  } while (armed == 1);
  return armed; /* 0, or why there is no queue */
}

int main(void) {
  struct work work = {.from = malloc((size_t)copies * copy_bytes),
                      .to = malloc((size_t)copies * copy_bytes)};
  if (work.from == NULL || work.to == NULL) return 1;
  int descriptor = haul_reap_eventfd();
  int loop = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event interest = {.events = EPOLLIN, .data.fd = descriptor};
  if (descriptor < 0) return fail("haul_reap_eventfd");
  if (loop < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, descriptor, &interest) != 0) return 1;

  for (int i = 0; i < copies; i++) {
    size_t at = (size_t)i * copy_bytes;
    for (size_t k = 0; k < copy_bytes; k++) work.from[at + k] = (unsigned char)i;
    haul_request request = haul_request_copy(work.to + at, work.from + at, copy_bytes);
    request.flags = HAUL_COMPLETE;
    request.user_data = (uint64_t)i;
    request.callback = finished;
    request.callback_context = &work;
    if (haul_submit(&request, 1, NULL) != 1) return fail("haul_submit");
  }
  printf("submitted %d copies\n", copies);

  /* Arm before the first wait: copies may be over already. */
  if (reap_all() < 0) return fail("haul_reap");
  while (work.done < copies) {
    struct epoll_event event;
    if (epoll_wait(loop, &event, 1, -1) == 1 && event.data.fd == descriptor && reap_all() < 0) {
      return fail("haul_reap");
    }
  }
  printf("%d completions, %d of them sound\n", work.done, work.sound);
  close(loop); /* but not the descriptor: it is haul's */
  free(work.from);
  free(work.to);
  return work.sound == copies ? 0 : 1;
}
