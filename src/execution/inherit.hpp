// What a child of fork inherits unfinished. As a rule that is nothing: fork waits for all that is
// in flight. It does not where a signal handler forks amid a copy of its own thread, nor for memory
// that does not arrive or a service that is stopped; then the parent's movers, which are not here,
// go on in the parent alone, and the child does its part again in its own memory when a thread
// there asks for it.
#pragma once

#include <cstdint>

#include "request/ring.hpp"

namespace haul {

// Ring::nobody_moves(seq), and the request has not ended. Finishes it, on this thread: what was not
// reported is copied from the last block that was shown on. Where that cannot be (memory shared
// with other processes, of a peer or granted, in which the parent does it; sides that overlap and
// were begun) it fails with Code::io, good as far as its blocks were shown. Returns at once if
// another thread is at it, or this one in a frame that the calling signal handler has interrupted;
// else when it has ended, or, between two chunks, the deadline has passed (now_ns() terms).
// Signal-safe.
void tend_inherited(Ring& ring, std::uint64_t seq, std::uint64_t deadline_ns) noexcept;

// The same for all such requests of the ring. A few loads in a process that was not forked.
void tend_all_inherited(Ring& ring) noexcept;

}  // namespace haul
