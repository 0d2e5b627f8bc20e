// Whether a core is left for haul's own threads where MPI's ranks take theirs, and which threads
// have one to themselves.
#pragma once

#include <cstddef>

namespace haul::fabric {

// Has this process more CPUs than there are processes that compute or poll, one core each? (Ranks
// that are bound to one core each have none to spare.) The CPUs are counted once.
bool cores_exceed(std::size_t processes) noexcept;

// The calling thread has a core to itself: what it begins to copy, it copies by itself.
void copy_on_this_thread() noexcept;
bool copies_on_this_thread() noexcept;

}  // namespace haul::fabric
