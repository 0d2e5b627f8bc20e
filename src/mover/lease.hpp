// The node-wide lease of a mover core: a name that one process at a time can hold, with no file
// behind it and gone with its holder.
#pragma once

#include "base/error.hpp"

namespace haul {

// Takes lease number `index` (the first mover of every process wants 0). Any user, any process of
// this network namespace competes. Two system calls. Code::again if another process holds it;
// HAUL_MOVER_LEASE=off: always granted.
Code take_lease(unsigned index) noexcept;

// Is it still ours? Not if the program has closed the socket: then another process may take it. One
// system call.
bool holds_lease(unsigned index) noexcept;

// Why the last attempt at lease 0 was refused; ok if it was not.
Code lease_refusal() noexcept;

void drop_lease(unsigned index) noexcept;

// In a child: the parent's leases are not ours to keep.
void drop_inherited_leases() noexcept;

}  // namespace haul
