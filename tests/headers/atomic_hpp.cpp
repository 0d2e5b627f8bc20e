// atomic.hpp compiles without any header before it, and twice.
#include <haul/atomic.hpp>

static_assert(sizeof(haul::atomic::node) == sizeof(haul_atomic_node*));

#include <haul/atomic.hpp>
