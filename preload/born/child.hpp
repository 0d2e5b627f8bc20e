// What a child of fork gets of the large allocations: a copy of its own.
#pragma once

namespace haul::preload {

// Has fork() do all that follows, from now on. Called once, by the library's constructor, before
// libhaul's own handlers can be registered: these make what was the parent's arena something else.
void watch_forks() noexcept;

// For who forks by a system call, for which libc calls no handlers: before it, and after it in the
// parent and in the child. Each makes system calls and takes no lock but the heap's, which is held
// from the first to the others.
void before_fork() noexcept;
void after_fork_in_parent() noexcept;
void after_fork_in_child() noexcept;

}  // namespace haul::preload
