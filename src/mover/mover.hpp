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
// The same, but where the movers have retired it makes none and returns false. Takes no lock.
bool wake_sleeping_mover() noexcept;

// Stops and joins the threads, and gives the leases back. A thread that has not ended by
// deadline_ns (on now_ns()'s clock), because memory does not arrive or a crash handler holds it, is
// left: false. All are left if a thread is just making some and waits for the program. Blocks no
// signal while it waits.
bool stop_movers(std::uint64_t deadline_ns) noexcept;

// A thread has given up its ring: if it was the last one with a ring, sleeping movers may end
// themselves 100 ms later, unless another thread has got one by then. The next doorbell makes new
// ones.
void ring_was_given_up() noexcept;

// Aides (base/thread/aide.hpp) end with the movers; where there is no mover, this ends them if no
// thread has a ring.
void dismiss_unneeded_aides() noexcept;

// In a child of fork: there are no movers, and no thread is making any, whatever the variables say.
void forget_movers() noexcept;

// In a bare clone()'s child: there will be no movers, since glibc cannot be relied on to make
// threads there.
void forbid_movers() noexcept;

// The CPU of the first mover while it is awake, else -1.
int mover_cpu() noexcept;

// Runs on the mover's thread whenever it wakes, and when the distance has been measured again:
// tune/ hangs its calibration here. The hook must return at once and open no file. Set before any
// submit.
using MoverHook = void (*)();
void on_mover_started(MoverHook hook) noexcept;

}  // namespace haul
