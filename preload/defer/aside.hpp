// The huge pages that a pending call will overwrite whole, put aside as they are (UFFDIO_MOVE)
// until their bytes have come: so the destination is missing meanwhile, as new memory is, and keeps
// its own huge pages.
//
//   put aside   by the caller, when the destination is watched; what the kernel refuses to move
//               (shared with a child, pinned, locked) stays, and is written by the caller at once
//   brought     filled aside and moved back as it is: by the mover (engine uffd), or by whoever
//               serves a touch; both may be at it at once, and write the same bytes
//   over        the call is retired: what is left at its places is nobody's, and is unmapped
//
// The places of a call are addresses without pages of their own, as many as its destination has,
// mapped when it begins. A call goes by its number in the table of pending.cpp. All is under the
// lock of watched.hpp, but for what the mover reads of the table (base/private.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/private.hpp"
#include "preload/defer/watched.hpp"

namespace haul::preload {

// For the mover.
const HaulPrivateAsides& asides() noexcept;

// Does the process have addresses to spare? Not where a limit or the system counts them, which
// would then refuse the program what it would get without haul. (Two system calls; no lock.)
bool may_put_aside() noexcept;

// Puts the huge pages of these blocks aside, which are watched as missing and whole. How many bytes
// were; 0: none, and end_aside() is not to be called.
std::size_t put_aside(unsigned call, const Bounds& blocks) noexcept;

// Unless the page of this block of the call's is there: fills it aside, with what lies at `src`, or
// with `value` where `src` is 0, and moves it back. Its bytes; 0, the block is to be provided
// otherwise (it is there, or its page cannot be had); -EAGAIN, an event waits to be read. Takes 0.1
// to 0.4 ms.
std::int64_t bring_aside(unsigned call, std::uintptr_t block, std::uintptr_t src,
                         unsigned char value) noexcept;

// The call is over. `back`: its pages are moved back with the bytes that they had, as far as the
// kernel lets; its caller overwrites all of them next.
void end_aside(unsigned call, bool back) noexcept;

// At the start, and for a child of fork.
void forget_asides() noexcept;

}  // namespace haul::preload
