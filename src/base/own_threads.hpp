// haul's own threads among the process's. A process ends when its last thread does (pthread_exit of
// main included), so haul's must not be what keeps it.
#pragma once

namespace haul::os {

// Is every other living thread of the process one of haul's, of whatever library of haul's? They
// are called "haul-..." otherwise than the main thread, which is the program's in any case, and
// block all asynchronous signals. False where /proc does not tell. Opens files, allocates nothing;
// one file where the main thread lives.
bool only_own_threads() noexcept;

// The last act of a thread of haul's that ends by itself. Where only haul's are left, glibc calls
// exit() on the one that ends last: not on one with a small stack and blocked signals then, but on
// an ordinary one that is made here, and that ends after all of them, or calls exit() itself after
// a second in which they do not. (Threads that serve others are waited for.) It joins the caller.
// False if none was made: the caller is to be detached or joined as ever.
bool end_process_elsewhere() noexcept;

// The same by a thread that goes on. True if such a thread is there then.
bool end_process_anyway() noexcept;

}  // namespace haul::os
