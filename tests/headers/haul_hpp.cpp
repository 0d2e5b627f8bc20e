// haul.hpp compiles without any header before it.
#include <haul/haul.hpp>
#include <haul/haul.hpp>
