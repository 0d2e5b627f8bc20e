// The rights that a program has given its large allocations by mprotect(), for the child's copy.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::preload {

// In a child, before its copy is mapped: learns which of the heap's pages have other rights than to
// be read and written, from the kernel. Beyond a few hundred stretches the rest is left as it is.
void learn_rights() noexcept;

// Has [at, at + bytes) such pages?
bool has_rights_of_its_own(std::uintptr_t at, std::size_t bytes) noexcept;

// Gives the copy of [at, at + bytes) these rights.
void restore_rights(std::uintptr_t at, std::size_t bytes) noexcept;

}  // namespace haul::preload
