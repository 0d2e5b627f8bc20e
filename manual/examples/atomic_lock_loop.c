/* haul_atomic_lock_start, haul_atomic_lock_test,
 * haul_atomic_lock_cancel, haul_atomic_lock_action: a program that must
 * not block acquires a lock, and gives up when it has waited enough. */
#include <haul/atomic.h>
#include <stdio.h>

int main(void) {
  haul_atomic_node* node;
  haul_atomic_window* window;
  haul_atomic_lock_place home = {.offset = 0};
  haul_atomic_lock_options options = {.size = sizeof options};
  haul_atomic_lock* lock;
  uint64_t token = 0;
  if (haul_atomic_node_open("block:127.0.0.1", NULL, &node) != 0 ||
      haul_atomic_window_create(node, 4096, &window) != 0 ||
      haul_atomic_window_export(window, &home.window) != 0)
    return 1;
  options.count = 1; /* its only member's words lie behind the home */
  options.home = &home;
  haul_atomic_lock_place own = {home.window,
                                HAUL_ATOMIC_LOCK_HOME_BYTES};
  options.members = &own;
  if (haul_atomic_lock_open(node, window, &options, &lock) != 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  unsigned long turns = 0;
  int code = haul_atomic_lock_start(lock, HAUL_ATOMIC_LOCK_ACQUIRE,
                                    UINT64_MAX);
  while (code == 0 && (code = haul_atomic_lock_test(lock, &token)) == 0)
    if (++turns == 1000000000) /* serves others; and at last */
      haul_atomic_lock_cancel(lock);
  printf("token %llu after %lu turns\n", (unsigned long long)token,
         turns);
  if (code == 1) code = haul_atomic_lock_release(lock);
  haul_atomic_lock_close(lock);
  haul_atomic_node_close(node);
  haul_atomic_window_destroy(window);
  return code != 0 || token == 0;
}
