// What makes a child's copy of the large allocations while the child goes on: a thread of the
// child's, so that fork() followed by exec copies nothing. What is to be copied is mapped privately
// from the arena's file; the copier has the kernel make the child's own pages of it, one after the
// other. Whatever the child writes meanwhile stays its own, as with any private mapping.
//
// Until the copier is gone the parent must not go on. It waits for the end of a pipe whose writing
// side the copier alone has, in a table of descriptors of its own, where nothing that the child
// closes reaches it. The kernel closes it when the copier ends, be it that it has done its work, or
// that the child has called exec or died.
//
// All in a child of fork; plan_copy() to start_copier() by its only thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::preload {

// Finds what the child needs, before there is one.
void prepare_copier() noexcept;

// [at, at + bytes) is mapped privately from a file, and the copier is to make it the child's own.
// False: it has no room for more, or the kernel cannot do it (before Linux 5.14).
bool plan_copy(std::uintptr_t at, std::size_t bytes) noexcept;

// Has all that was planned copied by a thread that holds `pipe` open, or by this one where it is
// little, where no thread can be had, or pipe is negative.
void start_copier(int pipe) noexcept;

// Waits until the copier is gone. For calls that would change what it copies or that need a process
// of one thread. A load where there is none.
void await_copier() noexcept;

}  // namespace haul::preload
