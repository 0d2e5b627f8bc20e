// The node-wide lease of a mover core: a name in the abstract socket namespace. Binding a socket to
// the name takes the lease, and the kernel lets one process at a time do that; the name has no file
// behind it and goes with its holder's socket, however the holder ends.
#pragma once

#include "base/error.hpp"

namespace haul {

// Takes lease number `index` (the first mover of every process wants 0). Any user, any process of
// this network namespace competes. Two system calls. Code::again if another process holds it;
// HAUL_MOVER_LEASE=off: always granted.
Code take_lease(unsigned index) noexcept;

// Is the lease still ours? It is not if the program has closed the socket: another process may then
// take it. One system call.
bool holds_lease(unsigned index) noexcept;

// Why the last attempt at lease 0 was refused; ok if it was not.
Code lease_refusal() noexcept;

void drop_lease(unsigned index) noexcept;

// In a child of fork: lets go of the parent's leases.
void drop_inherited_leases() noexcept;

}  // namespace haul
