/* haul_share, haul_unshare, haul_space_open_grant, haul_grant: a parent
 * grants memory, its child reads it through the node's service (haul
 * serve --daemon). (A process that is no child receives the descriptor
 * over a Unix socket.) */
#include <haul/haul.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int child(const haul_grant* grant) {
  haul_space granted;
  size_t bytes;
  if (haul_space_open_grant(grant, &granted, &bytes) != 0) {
    fprintf(stderr, "child: %s\n", haul_last_error());
    return 1;
  }
  char* own = haul_alloc(bytes);
  haul_request request = haul_request_copy(own, NULL, bytes);
  request.src.space = granted; /* from its first byte: address 0 */
  haul_ticket ticket;
  if (haul_submit(&request, 1, &ticket) != 1) return 1;
  if (haul_wait(ticket) != 0) return 1;
  printf("the child reads %c\n", own[bytes - 1]);
  return own[bytes - 1] != 'p';
}

int main(void) {
  size_t bytes = 1 << 20;
  char* memory = haul_alloc(bytes);
  haul_grant grant;
  if (memory == NULL) return 1;
  memset(memory, 'p', bytes);
  if (haul_share(memory, bytes, HAUL_SHARE_READ, &grant) != 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  haul_grant passed = grant;
  passed.fd = dup(grant.fd); /* haul closes its own in the child */
  int status = 1;
  pid_t pid = fork();
  if (pid == 0) return child(&passed);
  waitpid(pid, &status, 0);
  return haul_unshare(&grant) != 0 || status != 0;
}
