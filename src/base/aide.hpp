// haul's threads beside its movers, made ahead by a thread of the program's, that do what haul's
// threads ask for.
//
// A thread of haul's makes no thread: pthread_create() calls malloc, which may be the program's
// own, and for which glibc reserves 64 MiB of addresses in every thread that calls it
// (RLIMIT_AS counts them, MCL_FUTURE locks some). So whoever of the program's threads makes a mover
// or a link to the service makes the aides too. They sleep until they are asked, and end when no
// thread of the program has use of haul.
#pragma once

#include <cstdint>

namespace haul::os {

// service: tends the link. files: waits for file systems (apart.hpp). tune: measures, at the lowest
// priority. distance: plays the submitter's part in the measuring of a round trip.
enum class Aide : std::uint8_t { service, files, tune, distance };

// Makes one that there is not; one that was dismissed stays. 0 or -errno. For the program's
// threads.
int make_aide(Aide which) noexcept;

// Has body(argument) run by it, with asynchronous signals blocked. 0; -EBUSY: it is at work, or is
// just ending that; -ESRCH: there is no such thread. Any thread; one system call, no lock.
int ask_aide(Aide which, void (*body)(void* argument) noexcept, void* argument) noexcept;

// All of them end once they have nothing to do, unless they are made again first.
void dismiss_aides() noexcept;

// In a child of fork: there are none.
void forget_aides() noexcept;

}  // namespace haul::os
