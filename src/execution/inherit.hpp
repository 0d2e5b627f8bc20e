// What a child of fork inherits unfinished. As a rule that is nothing, since fork waits for all
// that is in flight. It cannot wait where a signal handler forks during a copy of its own thread,
// for memory that does not arrive, or for a service that is stopped; then the parent's movers,
// which do not exist here, go on in the parent alone, and the child repeats the request in its own
// memory when one of its threads asks for it.
#pragma once

#include <cstdint>

#include "request/ring.hpp"

namespace haul {

// For a request that has not ended and for which Ring::nobody_moves(seq). Finishes it on this
// thread: what was not reported is copied from the last visible block on. Where that is impossible
// (memory that is shared with other processes, a peer's or granted, in which the parent does it;
// sides that overlap and were begun) it fails with Code::io, good as far as its blocks were
// visible. Returns at once if another thread is at work on it, or this one in a function that the
// calling signal handler has interrupted; else when it has ended or, between two chunks, the
// deadline (on now_ns()'s clock) is over. Async-signal-safe.
void tend_inherited(Ring& ring, std::uint64_t seq, std::uint64_t deadline_ns) noexcept;

// The same for all such requests of the ring. A few loads in a process that was not forked.
void tend_all_inherited(Ring& ring) noexcept;

}  // namespace haul
