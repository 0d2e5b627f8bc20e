// Signals for a process in which no thread of the program is left: main has called pthread_exit(),
// the others have ended, and a node still serves. haul's threads block asynchronous signals, so
// SIGTERM would wait for ever.
#pragma once

namespace haul::atomics {

// Takes the pending signals of such a process in the calling thread, which is one of haul's: a
// signal that ends a process ends it, and the program's handlers run here. Does nothing while the
// program has threads. Costs one system call while no signal is pending.
void take_signals_of_nobody() noexcept;

}  // namespace haul::atomics
