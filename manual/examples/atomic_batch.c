/* haul_atomic_submit, haul_atomic_test, haul_atomic_wait,
 * haul_atomic_reap, haul_atomic_run, haul_atomic_window_run,
 * haul_atomic_operation, haul_atomic_completion, haul_atomic_code:
 * packets of operations under way at once. */
#include <haul/atomic.h>
#include <stdio.h>

static haul_atomic_operation add(uint64_t address, uint64_t data) {
  haul_atomic_operation operation = {.code = HAUL_ATOMIC_ADD};
  operation.width = 8;
  operation.address = address;
  operation.operand = data;
  return operation;
}

int main(void) {
  haul_atomic_node* node; /* owner and client at once */
  haul_atomic_window* window;
  haul_atomic_window_name name;
  haul_atomic_remote* remote;
  if (haul_atomic_node_open("block:127.0.0.1", NULL, &node) != 0 ||
      haul_atomic_window_create(node, 64, &window) != 0 ||
      haul_atomic_window_export(window, &name) != 0 ||
      haul_atomic_connect(node, &name, &remote) != 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  haul_atomic_operation both[2] = {add(name.address, 1),
                                   add(name.address + 8, 10)};
  haul_atomic_completion answers[4];
  uint64_t tickets[3];
  int code = 0, answered = 0;
  for (uint64_t tag = 0; tag < 3 && code == 0; tag++)
    code = haul_atomic_submit(remote, both, 2, tag, &tickets[tag]);
  if (code == 0) code = haul_atomic_wait(remote, tickets[0], both, 2);
  while (code == 0)
    code = haul_atomic_test(remote, tickets[1], NULL, 0);
  while (code >= 0 && answered == 0) /* the third, by its tag */
    code = answered = haul_atomic_reap(remote, answers, 4);
  if (code >= 0) code = haul_atomic_run(remote, both, 2);
  if (code == 0) code = haul_atomic_window_run(window, both, 2);
  if (code < 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  printf("tag %d was answered last; the words were %d and %d\n",
         (int)answers[0].tag, (int)both[0].old, (int)both[1].old);
  haul_atomic_node_close(node);
  haul_atomic_window_destroy(window);
  return both[0].old != 4 || both[1].old != 40;
}
