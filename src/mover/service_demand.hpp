// HAUL_SERVICE_USE=demand: a process that finds no service starts one.
#pragma once

namespace haul {

// Is that wanted, and was none started of late? The link's thread only.
bool may_start_service() noexcept;

// Runs `haul serve --daemon` to its end: its exit status, or -errno. Blocks; the link's thread
// only.
int start_service() noexcept;

}  // namespace haul
