// A call of at least the threshold's length, from the place `site` (a return address). As the
// functions of libc whose names they bear, signal handlers included.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::preload {

void* large_copy(void* dst, const void* src, std::size_t length, std::uintptr_t site) noexcept;
void* large_move(void* dst, const void* src, std::size_t length, std::uintptr_t site) noexcept;
void* large_set(void* dst, int value, std::size_t length, std::uintptr_t site) noexcept;

// From now on every call is libc's alone: the program has restricted its system calls, and one that
// is not allowed might kill it. For good.
void stand_aside() noexcept;

}  // namespace haul::preload
