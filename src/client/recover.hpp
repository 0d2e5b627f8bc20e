// When the node's service is gone: what it had begun and what it had not is finished by this
// process.
#pragma once

#include <cstdint>

namespace haul {

// Finishes every request that was the service's. Chunks within this process that it had not
// reported are gone on with from their last visible block; those that name granted memory fail with
// Code::io, good as far as their blocks were shown. To be called once the service cannot touch this
// process's memory any more (its socket reads "closed"), the gate says that there is none, and
// await_publishers() has returned. Takes no lock of the gate: a fork may hold it and wait for us.
void recover_from_service() noexcept;

// A chunk that the service has claimed and gives back, since it cannot get at the memory: this
// process can. Ignores what is no such chunk.
void finish_chunk(std::uint32_t ring, std::uint64_t seq, unsigned chunk) noexcept;

}  // namespace haul
