/* Copies that the service alone makes, for metrics_test.sh: out of a grant of its own memory, so no
 * waiter helps and every byte is the service's. For each line of its input it copies 8 times 1 MiB,
 * compares, and prints "copied". */
#define _GNU_SOURCE
#include <haul/haul.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { bytes = 1 << 20, copies = 8 };

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, haul_last_error());
  return 1;
}

int main(void) {
  unsigned char* from = haul_alloc(bytes);
  unsigned char* to = haul_alloc(bytes);
  haul_grant grant;
  haul_space space;
  size_t length = 0;
  if (from == NULL || to == NULL) return fail("haul_alloc()");
  if (haul_share(from, bytes, HAUL_SHARE_READ, &grant) != 0) return fail("haul_share()");
  if (haul_space_open_grant(&grant, &space, &length) != 0) return fail("opening the grant");
  char line[16];
  for (int round = 1; fgets(line, sizeof line, stdin) != NULL; ++round) {
    for (int i = 0; i < copies; ++i) {
      memset(from, round * copies + i, bytes);
      haul_request request = haul_request_copy(to, NULL, bytes);
      request.src.space = space;
      haul_ticket ticket;
      int submitted;
      for (int tries = 0;
           (submitted = haul_submit(&request, 1, &ticket)) == HAUL_EAGAIN && tries < 5000; ++tries)
        usleep(1000);
      if (submitted != 1) return fail("submitting");
      if (haul_wait(ticket) != 0) return fail("the copy");
      if (memcmp(to, from, bytes) != 0) {
        fprintf(stderr, "wrong bytes\n");
        return 1;
      }
    }
    printf("copied\n");
    fflush(stdout);
  }
  return 0;
}
