// What the program did with earlier allocations of the same size. Where it has written the last two
// whole, the next one gets its pages at once, as a copy's destination has (huge ones where they
// fit and can be had). Others have their pages when they are touched, so a program that
// leaves parts of its allocations alone needs no more memory than with private ones; only one that
// changes its ways has one allocation too many.
//
// Nothing is made where memory belongs to several nodes: pages must come from that of the thread
// which writes first.
//
// All but make_pages() under the heap's lock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::preload {

// An allocation is born without pages. True: they should be made at once.
bool note_birth(std::uintptr_t address, std::size_t bytes) noexcept;

// The program frees one, whose pages still say what it has written.
void note_end(std::uintptr_t address, std::size_t bytes) noexcept;

// Makes the pages of an allocation that nobody knows yet. No lock.
void make_pages(std::uintptr_t address, std::size_t bytes) noexcept;

}  // namespace haul::preload
