// A ring whose thread is gone and whose requests have ended comes to rest: its event descriptor is
// closed, all pages but its head's are given back, and movers and the service look at it no more.
// The next thread that wants a ring wakes one. docs/design/hot-path.md has the protocol.
#pragma once

#include "request/ring.hpp"

namespace haul {

// How many of the lowest rings at rest keep their pages, so that a program that makes a thread for
// each piece of work does not fault them in each time.
inline constexpr unsigned warm_rings = 4;

// All under the rings' lock.

// Puts a ring to rest, which is quiet and has no owner.
void rest_ring(Ring& ring) noexcept;

// Gives the calling thread a ring at rest, by preference one that has its pages; nullptr if none is
// at rest.
Ring* wake_ring() noexcept;

// For a new table, in which none is at rest.
void forget_resting() noexcept;

}  // namespace haul
