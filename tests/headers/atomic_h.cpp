// atomic.h is C++, too.
#include <haul/atomic.h>

static_assert(sizeof(haul_atomic_window_name) == 96);
static_assert(sizeof(haul_atomic_operation) == 48);
