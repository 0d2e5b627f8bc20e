// haul.h compiles as C++20 without any header before it.
#include <haul/haul.h>
#include <haul/haul.h>

static_assert(sizeof(haul_ticket) == 16);
