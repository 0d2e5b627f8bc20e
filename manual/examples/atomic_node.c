/* haul_atomic_node_describe, haul_atomic_node_counters,
 * haul_atomic_node_counter_name, haul_atomic_probe_xdp: who serves a
 * node, and what it has counted. */
#include <haul/atomic.h>
#include <stdio.h>

int main(void) {
  haul_atomic_node* node;
  char text[256];
  uint64_t values[64] = {0};
  int xdp = haul_atomic_probe_xdp();
  printf("XDP: %s\n", xdp == 0 ? "can be loaded" : haul_last_error());

  if (haul_atomic_node_open("block:127.0.0.1", NULL, &node) != 0 ||
      haul_atomic_node_describe(node, text, sizeof text) != 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  printf("%s\n", text);
  int count = haul_atomic_node_counters(node, values, 64);
  for (int i = 0; i < count && i < 64; i++)
    printf("%s: %llu\n", haul_atomic_node_counter_name((size_t)i),
           (unsigned long long)values[i]);
  haul_atomic_node_close(node);
  return count <= 0;
}
