// Rest: what becomes of a ring whose thread is gone and whose requests have ended. Its event
// descriptor is closed, all pages but its head's are given back, movers and the service look at it
// no more. The next thread that wants a ring wakes one. docs/design/hot-path.md has the protocol.
#pragma once

#include "request/ring.hpp"

namespace haul {

// The lowest rings at rest that keep their pages: a program that makes a thread for each piece of
// work does not fault them in each time.
inline constexpr unsigned warm_rings = 4;

// All under the rings' lock.

// The ring comes to rest. It is quiet and nobody's.
void rest_ring(Ring& ring) noexcept;

// A ring at rest, by preference one that has its pages, as the calling thread's; nullptr: none is
// at rest.
Ring* wake_ring() noexcept;

// A new table: none is at rest.
void forget_resting() noexcept;

}  // namespace haul
