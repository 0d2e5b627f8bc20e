// Aides are haul's threads besides its movers. Threads of the program make them ahead of time, and
// they do what haul's threads ask for.
//
// A thread of haul's makes no thread: pthread_create() calls malloc, which may be the program's
// own, and for which glibc reserves 64 MiB of addresses in every thread that calls it (RLIMIT_AS
// counts them, MCL_FUTURE locks some). So the thread of the program that makes a mover or a link to
// the service makes the aides too. They sleep until they are asked, and end when no thread of the
// program uses haul any more.
#pragma once

#include <cstdint>

namespace haul::os {

// service: tends the link. files: waits for file systems (apart.hpp). tune: measures, at the lowest
// priority. distance: plays the submitter's part when a round trip is measured.
enum class Aide : std::uint8_t { service, files, tune, distance };

// Makes the aide if it does not exist, and takes a dismissal back. 0 or -errno. For the program's
// threads.
int make_aide(Aide which) noexcept;

// Makes the aide run body(argument), with asynchronous signals blocked. 0; -EBUSY: it is at work,
// or just ending its work; -ESRCH: there is no such thread. Any thread; one system call, no lock.
int ask_aide(Aide which, void (*body)(void* argument) noexcept, void* argument) noexcept;

// Ends all aides as soon as they have nothing to do, unless they are made again first.
void dismiss_aides() noexcept;

// For a child of fork, in which there are none.
void forget_aides() noexcept;

}  // namespace haul::os
