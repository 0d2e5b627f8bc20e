// Signals of a process that has no thread of its program's left: main has called pthread_exit(),
// the others have ended, and a node still serves. haul's threads block what is asynchronous, so
// SIGTERM would wait for ever.
#pragma once

namespace haul::atomics {

// Takes what waits for such a process in the calling thread, one of haul's: what ends a process
// ends it, and the program's handlers run here. Nothing while the program has threads. Costs a
// system call while no signal waits.
void take_signals_of_nobody() noexcept;

}  // namespace haul::atomics
