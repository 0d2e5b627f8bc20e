// How far from a large call the first use of its destination is, and the first write of its source:
// what decides whether the call could return before its bytes are there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/mem/sites.hpp"

namespace haul::preload {

struct SampledCall {
  std::uintptr_t dst, src;  // src 0: a fill
  std::size_t length;
};

// Of a call that has just been carried out, has one page at one end of either side watched
// (samples.hpp); the ends take turns. Huge pages that reach beyond the range are not, nor those
// that are a file's, shared, or the caller's stack. `may_make`: threads may be made now.
void sample_distance(const SampledCall& call, CallDistances& distances, bool may_make) noexcept;

// The process ends: what is still watched was never used.
void end_distances() noexcept;

}  // namespace haul::preload
