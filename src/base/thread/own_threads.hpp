// Tells haul's threads from the program's. A process ends when its last thread does (even after
// pthread_exit() in main), so haul's must not keep it alive.
#pragma once

namespace haul::os {

// Is every other living thread of the process one of haul's, of whichever of haul's libraries?
// These are named "haul-...", unlike the main thread, which is the program's in any case, and block
// all asynchronous signals. False if /proc does not tell. Opens files (one if the main thread
// lives), allocates nothing.
bool only_own_threads() noexcept;

// Is another living thread of the process one of haul's? True if /proc does not tell. Likewise.
bool any_own_threads() noexcept;

// The last act of a thread of haul's that ends by itself. If only haul's threads are left, glibc
// calls exit() on the one that ends last. That should not be one with a small stack and blocked
// signals, so an ordinary thread is made here, which ends after all of them, or calls exit() itself
// if they have not ended after a second. (It waits for threads that serve others.) It joins the
// caller. False if none was made: the caller must then be detached or joined as usual.
bool end_process_elsewhere() noexcept;

// The same for a caller that goes on. True if such a thread exists then.
bool end_process_anyway() noexcept;

}  // namespace haul::os
