/* One process lets another read its memory: a grant goes over a socket, the node's service copies.
 * Start the service first: haul serve --daemon */
#define _GNU_SOURCE
#include <haul/haul.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { count = 1 << 20 };

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, haul_last_error());
  return 1;
}

/* A grant is a descriptor and an index: they travel together. */
static void pass(int socket, haul_grant* grant, int receive) {
  char control[CMSG_SPACE(sizeof(int))];
  struct iovec part = {grant, sizeof *grant};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  message.msg_control = memset(control, 0, sizeof control);
  message.msg_controllen = sizeof control;
  if (receive) {
    if (recvmsg(socket, &message, 0) != (ssize_t)sizeof *grant) _exit(1);
    memcpy(&grant->fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    return;
  }
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &grant->fd, sizeof(int));
  if (sendmsg(socket, &message, 0) != (ssize_t)sizeof *grant) _exit(1);
}

static int consume(int socket) {
  haul_grant grant;
  haul_space theirs;
  size_t bytes = 0;
  pass(socket, &grant, 1);
  if (haul_space_open_grant(&grant, &theirs, &bytes) != 0) return fail("opening the grant");
  uint32_t* own = haul_alloc(bytes);
  haul_request request = haul_request_copy(own, NULL, bytes); /* byte 0 of what was granted */
  request.src.space = theirs;
  haul_ticket ticket;
  if (own == NULL || haul_submit(&request, 1, &ticket) != 1) return fail("submitting");
  if (haul_wait(ticket) != 0) return fail("the copy");
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes / sizeof *own; i++) sum += own[i];
  printf("the consumer has %zu bytes; they sum to %llu\n", bytes, (unsigned long long)sum);

  request.dst = request.src; /* the other way was not granted */
  request.src = (haul_extent){HAUL_SPACE_SELF, 0, own, bytes};
  if (haul_submit(&request, 1, &ticket) == 1 && haul_wait(ticket) == HAUL_EPERM)
    printf("writing there was refused\n");
  return 0;
}

int main(void) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) return 1;
  if (fork() == 0) return consume(ends[1]);
  uint32_t* numbers = haul_alloc(count * sizeof *numbers); /* which the service can map */
  if (numbers == NULL) return fail("haul_alloc()");
  for (uint32_t i = 0; i < count; i++) numbers[i] = i;
  haul_grant grant;
  if (haul_share(numbers, count * sizeof *numbers, HAUL_SHARE_READ, &grant) != 0)
    return fail("haul_share()");
  pass(ends[0], &grant, 0);
  int status = 1;
  wait(&status);
  if (haul_unshare(&grant) != 0) return fail("haul_unshare()");
  printf("the grant is taken back\n");
  return status != 0;
}
