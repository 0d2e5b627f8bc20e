// The copies and fills that have returned to the program before their bytes were there, and what
// keeps up the illusion that they are done (paper 000, III-D).
//
// A deferred call moves the whole pages of its destination, which had none when it began, or whose
// huge pages are put aside (aside.hpp). They are watched as missing, and the pages of a copy's
// source as written, until it is retired:
//
//   begin    its ranges are entered in the table: from now on those who touch them are served
//   watch    the source is protected, then the destination is watched, and put aside if it is there
//   move     a mover takes it (haul_private_defer()), and the program goes on
//   retire   its ticket is done, or it never came to that: nothing is watched any more, and whoever
//            still is held goes on
//
// Who touches a page of the destination meanwhile is held until that page has its bytes, of a huge
// page that was put aside all of them; who writes to the source, until what lies there has been.
// Both are served by one thread (touches.hpp), at once and by itself, whatever the mover is at: the
// kernel settles who of the two provides a page. Ranges of two pending calls may share source
// pages, and nothing else.
//
// All is under the lock of watched.hpp.
#pragma once

#include <haul/haul.h>

#include <cstddef>
#include <cstdint>

#include "preload/defer/watched.hpp"
#include "preload/mem/call.hpp"
#include "preload/mem/sites.hpp"

namespace haul::preload {

// Enters what the call does to `pages`, whole pages of its destination. Its number, or -1: the
// table is full, or the call's pages are another's.
int begin_pending(const LargeCall& call, const Bounds& pages) noexcept;
// Watches what it has of both sides. False: the kernel refuses.
bool watch_pending(int number) noexcept;
// Then, where its destination is whole huge pages: puts those that are there aside (aside.hpp). How
// many bytes were.
std::size_t put_pending_aside(int number) noexcept;
// `tally` (may be nullptr) is told what the program waited for its bytes, once it is retired;
// the call began at `begun_ns`, and ends now.
void set_ticket(int number, const haul_ticket& ticket, WayTally* tally,
                std::uint64_t begun_ns) noexcept;
void retire(int number) noexcept;
// Is a call pending? A load.
bool any_pending() noexcept;
// Has a pending call one of these pages? Under the lock.
bool is_pending(const Bounds& pages) noexcept;

// Waits until no pending call, and no sample, has a page of this range, and retires those that had.
// Not where the calling thread has begun one and not yet set its ticket. `given_back`: the
// program is about to give the range back, or to use it for something else.
void settle(const Bounds& range, bool given_back = true) noexcept;
void settle_all() noexcept;
// The same before all memory is copied (fork) or locked (mlockall()), after which end_fork() is
// called: nothing begins meanwhile.
void settle_for_fork() noexcept;

// For the thread that serves: whoever is held; calls and samples that have ended. False: some are
// to end soon.
void serve_all() noexcept;
bool retire_done() noexcept;

// At the start, and for a child of fork, whose pages are all there and watched by nobody.
void begin_process() noexcept;

// How often a thread was held.
std::uint64_t touches_served() noexcept;

}  // namespace haul::preload
