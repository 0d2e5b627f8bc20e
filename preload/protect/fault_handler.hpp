// The handler of SIGSEGV that serves whoever touches memory of a protected copy, and what becomes
// of it where the program wants to handle faults itself.
//
// It is installed when the first copy is to be protected. A fault that is not of a protected copy's
// memory goes to what was there before, which is the default: then the instruction is repeated and
// ends the program by the same signal, at the same place. As soon as the program handles SIGSEGV,
// or blocks it, the handler is taken away for good, and nothing is protected any more.
#pragma once

namespace haul::preload {

// HAUL_TRANSPARENT_PLAN=protected: from now on it is looked at what the program does with SIGSEGV.
// In the constructor.
void expect_faults() noexcept;
// Looks for libc's functions. In the constructor.
void know_signal_functions() noexcept;

// Makes sure that the handler is there. False: the program handles SIGSEGV, or has blocked it.
bool ready_to_handle() noexcept;
// For a child of fork. The kernel copies the handlers of signals before it copies memory, so the
// handler that another thread was just installing may be known here and not be there.
void begin_handling() noexcept;

// The program makes this system call by syscall().
void note_signals(long number, const long* arguments) noexcept;

}  // namespace haul::preload
