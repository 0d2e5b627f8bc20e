// Reading rings that a hostile process may change at any time: everything is read once into a
// private copy, every index is checked or reduced, every loop is bounded.
#pragma once

#include <cstdint>
#include <string>

#include "service/clients/client.hpp"

namespace haul::service {

// A lock-free operation of an honest process is disturbed by a few helpers at most.
inline constexpr std::uint32_t max_attempts = 1000;

inline Tenancy tenancy_of(Ring& ring, std::uint64_t seq) {
  Tenancy tenancy = ring.tenancy(seq);
  tenancy.attempts = max_attempts;
  return tenancy;
}

// Has the tenancy ended? (Acquire.) A copy of its parameters made before may then be torn.
inline bool ended(const Ring& ring, std::uint64_t seq) {
  return ring.ended(seq);
}

// nullptr if a worker can be given the job; else what is wrong with it. Segments and addresses are
// checked when they are used.
const char* flaw_of(const Job& job, Chunks* checked);

// Have all tenancies before `seq` ended? Looks at a ring's worth of states at most.
bool fence_open(const Ring& ring, RingState& state, std::uint64_t seq);

// A private copy of line Q. Its pointers are the client's, and mean nothing here.
Extras read_extras(const Ring& ring, std::uint64_t seq);

// Leaves the failure of a request at `good` bytes where its process will look (line C), unless one
// with fewer good bytes is there.
void leave_failure(const Tenancy& tenancy, Code code, std::uint64_t good);
// What is there; io and 0 if nothing is.
Failure read_failure(const Tenancy& tenancy);

}  // namespace haul::service
