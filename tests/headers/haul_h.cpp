// haul.h compiles as C++20 without any header before it, and twice.
#include <haul/haul.h>

static_assert(sizeof(haul_ticket) == 16);

#include <haul/haul.h>
