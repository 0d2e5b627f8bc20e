/* haul_atomic_node_open, haul_atomic_node_close,
 * haul_atomic_window_create, haul_atomic_window_export,
 * haul_atomic_window_memory, haul_atomic_window_bytes,
 * haul_atomic_window_destroy, haul_atomic_connect,
 * haul_atomic_disconnect, haul_atomic_node, haul_atomic_node_options,
 * haul_atomic_hearing, haul_atomic_window, haul_atomic_remote,
 * haul_atomic_window_name: a counter on one node, and a client on
 * another that adds to it. */
#include <haul/atomic.h>
#include <stdio.h>

int main(void) {
  haul_atomic_node *owner, *client;
  haul_atomic_window* window;
  haul_atomic_window_name name;
  haul_atomic_remote* counter;
  uint64_t old = 0;
  haul_atomic_node_options options = {.size = sizeof options};
  options.hearing = HAUL_ATOMIC_HEAR_SOCKET;
  options.timeout_ns = 1000000000;

  /* The owner; on its network interface: "xdp:eth0", as root. */
  if (haul_atomic_node_open("block:127.0.0.1", NULL, &owner) != 0 ||
      haul_atomic_window_create(owner, 4096, &window) != 0 ||
      haul_atomic_window_export(window, &name) != 0 ||
      /* Another program, which was told the name. */
      haul_atomic_node_open("none", &options, &client) != 0 ||
      haul_atomic_connect(client, &name, &counter) != 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  for (int i = 0; i < 10; i++)
    haul_atomic_fetch_add(counter, name.address, 5, &old);
  uint64_t* word = haul_atomic_window_memory(window);
  uint64_t now = __atomic_load_n(word, __ATOMIC_SEQ_CST);
  printf("the client found %llu, the owner finds %llu in %zu bytes\n",
         (unsigned long long)old, (unsigned long long)now,
         haul_atomic_window_bytes(window));

  haul_atomic_disconnect(counter);
  haul_atomic_node_close(client);
  haul_atomic_node_close(owner);
  haul_atomic_window_destroy(window);
  return now != 50 || old != 45;
}
