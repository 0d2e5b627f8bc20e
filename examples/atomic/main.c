/* A window on one node, a counter and a lock in it, a client on another. Both run in this process
 * here, as two threads; the owner's part does nothing once the window is there. */
#include <haul/atomic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void must(int code) {
  if (code < 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    exit(1);
  }
}

enum { ROUNDS = 100, LOCK_AT = 64, MEMBERS = 2 };
static haul_atomic_window_name home;
static int in_the_lock; /* plain memory: the lock orders its users */

static void* member(void* unused) {
  haul_atomic_node* node;
  haul_atomic_window* own; /* where this member waits */
  haul_atomic_lock_place place = {home, LOCK_AT};
  haul_atomic_lock_options options = {
      .size = sizeof options, .rank = HAUL_ATOMIC_LOCK_ANY_RANK, .count = MEMBERS, .home = &place};
  haul_atomic_lock* lock;
  must(haul_atomic_node_open("block:127.0.0.1", NULL, &node));
  must(haul_atomic_window_create(node, HAUL_ATOMIC_LOCK_MEMBER_BYTES, &own));
  must(haul_atomic_lock_open(node, own, &options, &lock));
  for (int i = 0; i < ROUNDS; ++i) {
    must(haul_atomic_lock_acquire(lock, UINT64_MAX, NULL));
    in_the_lock = in_the_lock + 1;
    must(haul_atomic_lock_release(lock));
  }
  must(haul_atomic_lock_close(lock));
  must(haul_atomic_node_close(node));
  must(haul_atomic_window_destroy(own));
  return unused;
}

int main(void) {
  haul_atomic_node *owner, *client;
  haul_atomic_window* window;
  haul_atomic_remote* remote;
  uint64_t old = 0;
  pthread_t other;

  /* The owner: "xdp:eth0" serves without a process; a thread will do here. */
  must(haul_atomic_node_open("block:127.0.0.1", NULL, &owner));
  must(haul_atomic_window_create(owner, 4096, &window));
  must(haul_atomic_window_export(
      window, &home)); /* to be sent to others: haul_atomic_window_format() makes text of it */

  must(haul_atomic_node_open("none", NULL, &client));
  must(haul_atomic_connect(client, &home, &remote));
  for (int i = 0; i < ROUNDS; ++i) must(haul_atomic_fetch_add(remote, home.address, 1, &old));
  printf("the last add found %d\n", (int)old);
  must(haul_atomic_compare_swap(remote, home.address, 7, ROUNDS, &old));
  printf("the owner reads %d\n", (int)*(volatile uint64_t*)haul_atomic_window_memory(window));

  if (pthread_create(&other, NULL, member, NULL) != 0) return 1;
  member(NULL);
  pthread_join(other, NULL);
  printf("counted under the lock: %d\n", in_the_lock);

  must(haul_atomic_disconnect(remote));
  must(haul_atomic_node_close(client));
  must(haul_atomic_node_close(owner));
  must(haul_atomic_window_destroy(window));
  return 0;
}
