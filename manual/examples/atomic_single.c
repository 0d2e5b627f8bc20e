/* haul_atomic_fetch_add, haul_atomic_fetch_write,
 * haul_atomic_compare_swap, haul_atomic_read, haul_atomic_write,
 * haul_atomic_one: operations on words of a window, each a round trip.
 */
#include <haul/atomic.h>
#include <stdio.h>

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
  uint64_t word = name.address + 8, old[4], value;
  int code = haul_atomic_write(remote, word, 1);
  if (code == 0) code = haul_atomic_fetch_add(remote, word, 2, &old[0]);
  if (code == 0)
    code = haul_atomic_fetch_write(remote, word, 7, &old[1]);
  if (code == 0) /* 9 in place of 7 */
    code = haul_atomic_compare_swap(remote, word, 9, 7, &old[2]);
  if (code == 0) /* those without a function of their own */
    code = haul_atomic_one(remote, HAUL_ATOMIC_OR, word, 6, 0, &old[3]);
  if (code == 0) code = haul_atomic_read(remote, word, &value);
  if (code != 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  printf("%d %d %d %d, in the end %d\n", (int)old[0], (int)old[1],
         (int)old[2], (int)old[3], (int)value);
  haul_atomic_node_close(node); /* ends the connection, too */
  haul_atomic_window_destroy(window);
  return value != 15;
}
