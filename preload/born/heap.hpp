// The large allocations of a program, born in haul's arena: whoever exchanges messages with this
// process can map them, so what lies in them is copied once (paper 001, III-B, without pinning).
//
// What is given out is recorded in a table of this process alone, a word for each page of the
// arena, so nothing that a peer writes into the arena misleads free(). Freed allocations are kept
// with their pages, as many as glibc's malloc keeps (twice the largest one that was freed, of those
// below 32 MiB), and given out again; the others' pages go back to the system at once. Before new
// pages are taken, as many of those that are kept go back.
//
// A child of fork has a copy of its own of all of them, at the same addresses (child.cpp), and
// makes no new ones: its large allocations are libc's.
//
// Threads: all functions may be called from any thread; they take one lock, which is held while a
// thread forks. As malloc(), none may be called in a signal handler; but one that interrupts them
// may fork, and both the parent and the child go on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::preload {

inline constexpr std::size_t born_page_bytes = 4096;
constexpr std::size_t whole_pages(std::size_t bytes) noexcept {
  return (bytes + born_page_bytes - 1) & ~(born_page_bytes - 1);
}
// The largest alignment that an allocation may have.
inline constexpr std::size_t most_born_alignment = std::size_t{2} << 20;

// From how many bytes on an allocation is born shared; SIZE_MAX until the library has started.
std::size_t born_from_bytes() noexcept;
void begin_births(std::size_t from_bytes) noexcept;

// At least `bytes` bytes, whole pages, aligned to pages at least; those of 2 MiB and more to 2 MiB,
// so that they can lie on huge pages. *zeroed: they read as zero (else as anything). nullptr: there
// are none, and libc's malloc is to be asked.
void* bear(std::size_t bytes, std::size_t alignment, bool* zeroed) noexcept;

// How many bytes the program may use of an allocation; 0: the address is not where one begins. No
// lock.
std::size_t born_bytes(const void* address) noexcept;

// Frees an allocation. One that was freed already ends the process, as with glibc's free().
void bury(void* address) noexcept;

// Gives the pages behind the first `bytes` bytes of an allocation back; its size stays.
void shrink_born(void* address, std::size_t bytes) noexcept;

// The program gives some allocation other rights than to be read and written.
void note_rights() noexcept;

// Gives up whole pages of allocations, which read as zero afterwards. False: the kernel refuses.
bool give_up_born(void* at, std::size_t bytes) noexcept;

// Is this a child of the process that made the allocations, in which they are private?
bool is_born_child() noexcept;

// Does [address, address + bytes) touch the addresses among which all allocations are? No lock.
bool lies_in_heap(const void* address, std::size_t bytes) noexcept;

// Does it touch an allocation, also one that is kept, or that is a child's copy? (Not the arena's
// other pages: haul maps those itself.) No lock.
bool touches_born(const void* address, std::size_t bytes) noexcept;

}  // namespace haul::preload
