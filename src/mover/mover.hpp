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

// Stops and joins the threads once their rings are quiet, and gives the leases back. wake_mover()
// makes new ones.
void stop_movers() noexcept;

// Around fork, before the gate is held: nobody is making threads then, so the child can.
void lock_movers() noexcept;
void unlock_movers() noexcept;

// In a child: there are no threads, whatever the variables say.
void forget_movers() noexcept;

// In a child by a bare clone: none, for good, since glibc cannot be relied on to make threads
// there.
void forbid_movers() noexcept;

// The CPU of the first mover while it is awake, else -1.
int mover_cpu() noexcept;

// Runs once a process, on the mover thread, after its first start: tune/ hangs its calibration
// here. Set before any submit.
using MoverHook = void (*)();
void on_mover_started(MoverHook hook) noexcept;

}  // namespace haul
