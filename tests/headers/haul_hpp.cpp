// haul.hpp compiles without any header before it, and twice.
#include <haul/haul.hpp>

static_assert(sizeof(haul_ticket) == 16);

#include <haul/haul.hpp>
