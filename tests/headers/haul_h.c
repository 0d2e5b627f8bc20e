/* haul.h is C11: it compiles alone and twice, and its declarations may be named from C. */
#include <haul/haul.h>

int use_header(void);
int use_header(void) {
  haul_ticket (*copy)(void*, const void*, size_t) = haul_copy;
  return copy != NULL && HAUL_VERSION_MAJOR >= 0;
}

#include <haul/haul.h>
