// The copies that have returned to the program before their bytes were there, and whose memory it
// may not touch meanwhile (paper 000, III-D).
//
// A copy's destination may not be touched at all and its source not be written, whole pages of
// either, from begin to the end:
//
//   begin    it is entered in the table: from now on a fault there is not the program's
//   protect  both sides' rights are taken
//   move     a mover takes it (haul_private_force_copy()), and the program goes on
//   end      its ticket is done: rights are given back, by the first of these: who has touched it,
//            who takes the memory away (settle() in ../defer/pending.hpp), and the next large call.
//            Where the kernel refuses for now, the copy stays for a second, and each of these
//            tries again
//
// Ranges of two copies may share source pages, and nothing else. All is under the lock of
// ../defer/watched.hpp, whose count of what is watched counts these, too.
#pragma once

#include <haul/haul.h>

#include <cstddef>
#include <cstdint>

#include "preload/defer/watched.hpp"
#include "preload/mem/sites.hpp"

namespace haul::preload {

// What a mover will do: `dst` and `src` are the pages to be protected, of which the bytes from
// `from` on go to `to`.
struct ProtectedMove {
  Bounds dst, src;
  std::uintptr_t to = 0, from = 0;
  std::size_t length = 0;
};

// May this range be protected: is it memory that may be read and written and nothing else, but for
// what is protected already?
bool may_protect(const Bounds& range) noexcept;

// Enters it. Its number, or -1: the table is full, its pages are another's, the process forks, or
// protect_no_more() was called.
int begin_protected(const ProtectedMove& move) noexcept;
// Takes the rights. False: the kernel refuses.
bool take_rights(int number) noexcept;
// The mover has it. `tally` (may be nullptr) is told what the program waited for its bytes; the
// call began at `begun_ns`, and ends now.
void set_mover(int number, const haul_ticket& ticket, WayTally* tally,
               std::uint64_t begun_ns) noexcept;
// It never came to that.
void drop_protected(int number) noexcept;

// Somebody has touched this address. Waits for all copies that have its page, and ends them. False:
// none has. Any thread that does not hold the lock; async-signal-safe.
bool serve_protected(std::uintptr_t address) noexcept;

// Ends the copies that are done and have a page of the range. False: some are not done. Under the
// lock. (What the calling thread is just beginning does not count.)
bool end_protected(const Bounds& range) noexcept;

// From now on none begins, and none is left.
void protect_no_more() noexcept;

// For a child of fork: there are none.
void forget_protected() noexcept;

// How often a thread was held.
std::uint64_t protected_touches() noexcept;

}  // namespace haul::preload
