// When the node's service is gone, this process finishes what the service had begun and what it had
// not.
#pragma once

#include <cstdint>

namespace haul {

// Finishes every request that was given to the service. Chunks within this process that it had not
// reported are continued from their last visible block; chunks that name granted memory fail with
// Code::io, and are good as far as their blocks were visible. Call it once the service cannot touch
// this process's memory any more (its socket reads "closed"), the gate says that there is no
// service, and await_publishers() has returned. Takes no lock of the gate's: a fork may hold it and
// wait for this.
void recover_from_service() noexcept;

// Finishes a chunk that the service has claimed and gives back because it cannot reach the memory,
// as this process can. Ignores anything else.
void finish_chunk(std::uint32_t ring, std::uint64_t seq, unsigned chunk) noexcept;

}  // namespace haul
