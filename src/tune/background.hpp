// When calibration happens: figures from the cache file at once, measured ones in the background or
// on demand.
#pragma once

#include <cstddef>

#include "base/error.hpp"
#include "tune/trust.hpp"

namespace haul::tune {

// Lets a thread of the lowest priority ("haul-tune") load the stored figures. If there are none, or
// what is seen of the machine speaks against them (trust.hpp; looked at every ten minutes), the
// thread measures (one process of a user at a time, half a second of CPU at most) and stores what
// can be believed. It repeats a disturbed measurement later, seven times at most. Movers call this
// whenever they wake or have measured the distance; it does nothing if there is nothing to do, and
// never blocks. That thread, an aide (base/thread/aide.hpp), opens no file either (files.hpp).
// HAUL_TUNE_BACKGROUND=off: loads only.
void consider() noexcept;

// Loads the stored figures in the background, if there are any; measures nothing. For a process
// whose copies go to the node's service. Never blocks.
void load_stored() noexcept;

// Measures in the calling thread and stores. progress may be nullptr. Code::again also if the
// machine was too busy. Blocks for a fraction of a second, and 5 s more if the file system does not
// answer.
Code calibrate_now(void (*progress)(int percent, void* context), void* context,
                   Error* error) noexcept;

// The stored figures, or the defaults; blocks for a second at most.
Measured stored_or_default() noexcept;

// Stores these rings beside the figures that are stored already. Blocks as calibrate_now(). An
// Error with code ok, or why they are not kept: Code::again if no figures are stored.
Error keep_rings(const HaulPrivateRing& near, const HaulPrivateRing& far) noexcept;

}  // namespace haul::tune
