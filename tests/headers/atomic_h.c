/* atomic.h is C11: it compiles alone and twice, and its declarations may be named from C. */
#include <haul/atomic.h>

int use_atomic_header(void);
int use_atomic_header(void) {
  int (*open)(const char*, const haul_atomic_options*, haul_atomic**) = haul_atomic_open;
  return open != NULL && haul_fetch_add != NULL;
}

#include <haul/atomic.h>
