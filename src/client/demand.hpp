// HAUL_SERVICE_USE=demand: a process that finds no service starts one.
#pragma once

#include "base/error.hpp"

namespace haul {

// Is that wanted, and was no service started of late? The link's thread only.
bool may_start_service() noexcept;

// Starts one by `haul serve --daemon` and opens the socket to it; returns why that failed, if it
// did. Blocks; the link's thread only.
Error start_service() noexcept;

}  // namespace haul
