// When calibration happens: figures from the cache file at once, measured ones in the background or
// on demand.
#pragma once

#include "base/error.hpp"

namespace haul::tune {

// Loads stored figures; if there are none, measures in a thread of the lowest priority (one process
// at a time, half a second of CPU at most) and stores them. Called once, on the mover thread, when
// it first starts. Never blocks for long. HAUL_TUNE_BACKGROUND=off: loads only.
void start_background() noexcept;

// Takes the stored figures into use, if there are any; measures nothing. For a process whose copies
// go to the node's service.
void load_stored() noexcept;

// Measures in the calling thread and stores. progress may be nullptr. Blocks for a fraction of a
// second.
Code calibrate_now(void (*progress)(int percent, void* context), void* context,
                   Error* error) noexcept;

}  // namespace haul::tune
