// One call carried out by its caller and haul's mover, whatever the program is doing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/extent.hpp"

namespace haul::preload {

// May the call be shared? Not where
// - the program handles SIGSEGV or SIGBUS, and so may want to see them on the thread that copies;
// - the mover would have to be made, or this thread be made known to it, which takes the program's
//   malloc: not in a signal handler or within an allocator, so it waits for a call with no signal
//   blocked that was not when the program started, from another module than the allocator's;
// - this is a child that vfork() or clone() made in its parent's memory;
// - haul has no core for this process.
// The first call of a thread that may makes it known, and the first of a process the mover.
bool may_share(std::uintptr_t site) noexcept;

// May it be deferred? The same, but for faults: of memory that may be read and written a mover
// raises none.
bool may_defer(std::uintptr_t site) noexcept;

// May threads be made here, in a call from this place? (As above.)
bool is_calm(std::uintptr_t site) noexcept;

// Moves the bytes and returns when they are there; call only if may_share(). False: it failed, and
// the caller is to move all of them.
bool move_together(Operation operation, std::uintptr_t dst, std::uintptr_t src_or_value,
                   std::size_t length) noexcept;

// Ends the mover that this process was given, if it was. Not while the caller is in a shared call.
void part_from_mover() noexcept;

// Once, in the constructor: it asks the loader what later calls must not, since a thread may hold
// the loader's lock (dlopen()) and wait for another one that copies.
void know_process() noexcept;

}  // namespace haul::preload
