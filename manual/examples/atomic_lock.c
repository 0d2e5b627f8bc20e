/* haul_atomic_lock_open, haul_atomic_lock_close,
 * haul_atomic_lock_acquire, haul_atomic_lock_try,
 * haul_atomic_lock_release, haul_atomic_lock_renew,
 * haul_atomic_lock_remaining, haul_atomic_lock_stats, haul_atomic_lock,
 * haul_atomic_lock_place, haul_atomic_lock_options,
 * haul_atomic_lock_counts: a lock whose home keeps its members' names,
 * and its only member. */
#include <haul/atomic.h>
#include <stdio.h>

enum { MEMBERS = 8, OWN_AT = 2048 };

int main(void) {
  haul_atomic_node* node;
  haul_atomic_window* window; /* the lock, and what is this member's */
  haul_atomic_lock_place home = {.offset = 0};
  haul_atomic_lock_options options = {.size = sizeof options};
  haul_atomic_lock_counts counts;
  haul_atomic_lock* lock;
  uint64_t first, second;
  if (haul_atomic_node_open("block:127.0.0.1", NULL, &node) != 0 ||
      haul_atomic_window_create(node, 4096, &window) != 0 ||
      haul_atomic_window_export(window, &home.window) != 0)
    return 1;
  options.rank = HAUL_ATOMIC_LOCK_ANY_RANK;
  options.count = MEMBERS;
  options.home = &home;
  options.own_offset =
      OWN_AT; /* behind HAUL_ATOMIC_LOCK_DIRECTORY_BYTES(MEMBERS) */
  if (haul_atomic_lock_open(node, window, &options, &lock) != 0 ||
      haul_atomic_lock_acquire(lock, 1000000000, &first) != 0 ||
      haul_atomic_lock_renew(lock) != 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  printf("held for %d ms more\n",
         (int)(haul_atomic_lock_remaining(lock) / 1000000));
  if (haul_atomic_lock_release(lock) != 0 ||
      haul_atomic_lock_try(lock, &second) != 0 ||
      haul_atomic_lock_release(lock) != 0 ||
      haul_atomic_lock_stats(lock, &counts) != 0)
    return 1;
  printf("acquired %d times; a later token is greater: %d\n",
         (int)counts.acquired, second > first);
  haul_atomic_lock_close(lock);
  haul_atomic_node_close(node);
  haul_atomic_window_destroy(window);
  return counts.acquired != 2 || second <= first;
}
