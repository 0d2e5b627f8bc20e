// The functions that guards.cpp takes over.
#pragma once

namespace haul::preload {

// Looks for libc's. Once, in the constructor: later a thread may hold the loader's lock.
void know_guarded() noexcept;

// The same wait before a system call of this number, which the program makes by syscall().
void settle_before(long number, const long* arguments) noexcept;

// Does this one concern all memory: make a child that has a copy of it (or a thread, of clone3()),
// or lock it? Then nothing is pending when this returns, nor begins until end_fork().
bool begins_settling(long number, const long* arguments) noexcept;

// Has the program never forbidden huge pages, for a range or for all of it? (Where it does so
// without libc, that is not seen.)
bool huge_pages_allowed() noexcept;
// Looks whether it does by this system call.
void note_huge_pages(long number, const long* arguments) noexcept;

}  // namespace haul::preload
