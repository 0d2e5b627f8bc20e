// The dedicated movers of this process: threads, each on a leased core, that spin while there is
// work and sleep when there is none.
#pragma once

#include <cstdint>

#include "base/error.hpp"

namespace haul {

inline constexpr unsigned max_movers = 16;

// Makes the mover threads if there are none, else wakes a sleeping one. ok, or why there is no
// mover (sentence in *error). After ok a published request will be looked at. Allocates and takes
// locks only when threads are made.
Code wake_mover(Error* error) noexcept;

// Rings the bell of a sleeping mover: for a submit that has just published. One system call at
// most.
void ring_doorbell() noexcept;
// The same, but makes none where they have retired: false then. Takes no lock.
bool wake_sleeping_mover() noexcept;

// Stops and joins the threads, and gives the leases back. A thread that has not ended at
// deadline_ns (now_ns() terms), amid memory that does not arrive or a crash handler, is left:
// false; so are all if a thread is making some and waits for the program. Blocks no signal while it
// waits.
bool stop_movers(std::uint64_t deadline_ns) noexcept;

// A thread has given up its ring: if it was the last, movers that sleep may end themselves (100 ms
// later, if none has got one meanwhile). The next doorbell makes new ones.
void ring_was_given_up() noexcept;

// Aides (base/aide.hpp) end with the movers; here where there is none, if no thread has a ring.
void dismiss_unneeded_aides() noexcept;

// In a child: there are no threads, and nobody is making any, whatever the variables say.
void forget_movers() noexcept;

// In a child by a bare clone: none, for good, since glibc cannot be relied on to make threads
// there.
void forbid_movers() noexcept;

// The CPU of the first mover while it is awake, else -1.
int mover_cpu() noexcept;

// Runs on the mover's thread at each of its wakings, and when the distance has been measured again:
// tune/ hangs its calibration here. It returns at once: it opens no file. Set before any submit.
using MoverHook = void (*)();
void on_mover_started(MoverHook hook) noexcept;

}  // namespace haul
