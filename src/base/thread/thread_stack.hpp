// Stacks for haul's own threads. When a thread ends on a stack of glibc's, glibc calls madvise();
// and MPIs and libfabric's memory monitor overwrite the first bytes of madvise(), mmap() and
// munmap() while other threads may be inside, so a thread that returns there runs half an
// instruction. A thread whose maker provided the stack ends without any such call.
#pragma once

#include <pthread.h>

namespace haul::os {

// pthread_create() on such a stack: a guard page, 256 KiB, and what glibc needs. It uses a stack of
// glibc's where all are in use, memory is short, or a sanitizer must know each stack. 0 or an error
// of pthread_create()'s. No library that contains this may be unloaded (-z nodelete): the stacks
// stay mapped for later threads.
int create_thread(pthread_t* thread, pthread_attr_t* attributes, void* (*body)(void*),
                  void* argument) noexcept;

// Lets another thread take this thread's stack as soon as the thread has ended: it has been joined,
// or it is the calling thread and nobody will join it. It may be a thread on another stack as well.
void release_stack_of(pthread_t joined) noexcept;
void release_own_stack() noexcept;

}  // namespace haul::os
