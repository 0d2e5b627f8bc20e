// What an atomic operation does to memory: every operation and datatype that fi_atomic(3) defines.
#pragma once

#include <rdma/fi_atomic.h>

#include <cstddef>

#include "fabric/protocol/matcher.hpp"

namespace haul::fabric {

// Bytes of one element; 0 for no datatype of atomics.
std::size_t datatype_bytes(fi_datatype datatype) noexcept;

// Applies the operation to `count` elements at `target`, which must be aligned to the element's
// size (16 bytes: to 8). result (may be nullptr) receives what was there before. Elements of up to
// 8 bytes change by one compare-and-swap of the CPU's, so that any thread or process may change
// them in the same way at the same time; larger ones under a lock of this process's. The
// combination must be one that atomic_supported() names.
void apply_atomic(fi_op operation, fi_datatype datatype, std::size_t count, void* target,
                  const void* operand, const void* comparand, void* result) noexcept;

}  // namespace haul::fabric
