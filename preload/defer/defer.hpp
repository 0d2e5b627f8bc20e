// One call of the program, deferred: it returns before its bytes are there.
#pragma once

#include <cstdint>

#include "preload/mem/call.hpp"
#include "preload/mem/sites.hpp"

namespace haul::preload {

enum class NotDeferred : std::uint8_t {
  deferred,      // none of it: it was
  no_userfault,  // nobody can serve those who touch the memory
  not_private,   // a side is a file's or shared, or the caller's stack
  no_mover,      // none takes it now, or too much is pending
  pages_stay,    // the destination has pages, and these cannot be put aside
};

// Does the call overwrite whole huge pages, but for a quarter at most? Opens a file and asks the
// kernel: 4 us for 16 MiB of huge pages, 11 of small ones, and 0.7 a MiB more of these (Zen 5).
bool lies_on_huge_pages(const LargeCall& call) noexcept;

// Writes what of the destination shares pages with other memory, and gives the rest to a mover.
// `may_make`: threads may be made now. Unless it was deferred, the caller is to carry out all of
// it. What is `there` of the destination was looked at before. The calling thread and a mover must
// know each other. `tally` (may be nullptr) is told what the program will have waited for the
// bytes.
NotDeferred defer(const LargeCall& call, Pages there, bool may_make, WayTally* tally) noexcept;

}  // namespace haul::preload
