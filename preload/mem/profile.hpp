// What a profile (`haul profile`) wants to know beside the times.
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/mem/sites.hpp"

namespace haul::preload {

// From now on calls are looked at closely. In the constructor.
void begin_profile() noexcept;
bool profiling() noexcept;

// The destination's pages, judged by the middle one. Of calls below 256 KiB one in eight is asked
// for, since an answer (1 us) costs a part of them; whether pages are huge (10 us) is asked from
// 2 MiB on. No lock; async-signal-safe.
Pages look_closely(std::uintptr_t dst, std::size_t length) noexcept;

// HAUL_TRANSPARENT_SAMPLE. In the constructor.
void set_sampling(std::uint64_t every) noexcept;

// Is this one of the calls of its kind whose distances are to be measured? The first four, and then
// one in so many.
bool is_sampled(CallClass& kind) noexcept;

}  // namespace haul::preload
