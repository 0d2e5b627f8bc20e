// The names of a lock's members, kept at its home: {id, offset, name} of each rank. A member
// that joins takes an entry by compare&swap of its id: a free one, else one whose member no longer
// answers.
#pragma once

#include <haul/atomic.h>

#include <cstdint>

#include "base/error.hpp"

namespace haul::atomics::lock {

class Places;

namespace directory {

// Of an entry: id (0: nobody's), offset, and the name as it is.
inline constexpr unsigned words = 2 + sizeof(haul_atomic_window_name) / 8;
static_assert(words <= HAUL_ATOMIC_MAX_BATCH && words * 8 <= 128);

// Where an entry lies, from the home's place.
constexpr std::uint64_t entry_of(unsigned rank) noexcept {
  return HAUL_ATOMIC_LOCK_DIRECTORY_BYTES(rank);
}

// False: nobody's.
bool parse(const std::uint64_t (&entry)[words], haul_atomic_lock_place* place) noexcept;

// Enters a member: at *rank, or at any if that is HAUL_ATOMIC_LOCK_ANY_RANK. `id` is random, not 0.
// ok; again: all are taken by others; or how the home failed. Waits.
Code join(Places& places, unsigned count, std::uint64_t id, const haul_atomic_lock_place& own,
          std::uint32_t* rank) noexcept;
// Leaves the entry to others. Waits.
void leave(Places& places, std::uint64_t id, std::uint32_t rank) noexcept;

}  // namespace directory
}  // namespace haul::atomics::lock
