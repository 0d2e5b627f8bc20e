// HAUL_SERVICE_USE=demand: a process that finds no service starts one.
#pragma once

#include "base/error.hpp"

namespace haul {

// Is that wanted, and was none started of late? The link's thread only.
bool may_start_service() noexcept;

// Has `haul serve --daemon` start one, and opens the channel to it; or why that gave none. Blocks;
// the link's thread only.
Error start_service() noexcept;

}  // namespace haul
