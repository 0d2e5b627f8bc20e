// Stacks of haul's own threads. glibc ends a thread on a stack of glibc's by madvise(), and MPIs
// and libfabric's memory monitor overwrite the first bytes of madvise(), mmap() and munmap() while
// other threads may be inside: whoever returns there then runs half an instruction. A thread whose
// maker brought the stack along ends without any such call.
#pragma once

#include <pthread.h>

namespace haul::os {

// pthread_create() on such a stack, of 256 KiB and what glibc puts there above a page that nobody
// may touch; on one of glibc's where all are in use, memory is short, or a sanitizer wants to know
// each stack. 0 or an error of pthread_create()'s. No library with this in it may be unloaded
// (-z nodelete): the stacks stay mapped for later threads.
int create_thread(pthread_t* thread, pthread_attr_t* attributes, void* (*body)(void*),
                  void* argument) noexcept;

// The thread's stack may be taken by another one from the thread's end on: it has been joined, or
// (the calling thread's) nobody will join it. Threads on other stacks may be told of as well.
void release_stack_of(pthread_t joined) noexcept;
void release_own_stack() noexcept;

}  // namespace haul::os
