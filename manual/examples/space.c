/* haul_space_open, haul_space_close, haul_space, haul_extent: a parent
 * reads what its child has in memory. */
#define _POSIX_C_SOURCE 200809L
#include <haul/haul.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static char state[1 << 20], seen[1 << 20];

int main(void) {
  int ready[2];
  if (pipe(ready) != 0) return 1;
  pid_t child = fork();
  if (child == 0) { /* at the same address as its parent's */
    memset(state, 'c', sizeof state);
    if (write(ready[1], "", 1) == 1) pause();
    _exit(1);
  }
  char byte;
  if (read(ready[0], &byte, 1) != 1) return 1;
  haul_space theirs;
  int code = haul_space_open(child, &theirs);
  if (code == 0) {
    haul_request request = haul_request_copy(seen, state, sizeof seen);
    request.src.space = theirs;
    haul_ticket ticket;
    code = haul_submit(&request, 1, &ticket);
    if (code == 1) code = haul_wait(ticket);
    haul_space_close(theirs);
  }
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  if (code != 0) fprintf(stderr, "%s\n", haul_last_error());
  printf("the child has %c, the parent %d\n", seen[9], state[9]);
  return code != 0 || seen[9] != 'c';
}
