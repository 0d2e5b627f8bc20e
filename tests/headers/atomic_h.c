/* atomic.h is C11: it compiles alone and twice, and its declarations may be named from C. */
#include <haul/atomic.h>

int use_atomic_header(void);
int use_atomic_header(void) {
  int (*open)(const char*, const haul_atomic_node_options*, haul_atomic_node**) =
      haul_atomic_node_open;
  int (*add)(haul_atomic_remote*, uint64_t, uint64_t, uint64_t*) = haul_atomic_fetch_add;
  return open != NULL ? add(NULL, 0, 0, NULL) : 0;
}

#include <haul/atomic.h>
