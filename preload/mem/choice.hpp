// Which way a call is carried out.
//
// What is best is found by trying, for each place in the program, length and state of the pages:
// the usual way first, then another one now and then, ever more rarely, and the fastest of late
// wins. So a machine whose other core is busy, or a place whose memory comes and goes in the
// caches, needs no model. Deferring is tried only where the first use of most destinations was seen
// to be farther off than a call takes, and pays for every wait for its bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/extent.hpp"
#include "preload/mem/sites.hpp"

namespace haul::preload {

// site may be nullptr. Thread-safe; no lock.
Way choose(Site* site, Pages pages, std::size_t length, Operation operation) noexcept;

// Could a trial defer such a call by now, if it is into new memory or huge pages and its
// destination's first use is far enough off?
bool may_defer_unasked(Pages pages, std::size_t length) noexcept;

// HAUL_TRANSPARENT_PLAN: always this way; any way by which a call's bytes are there when it
// returns.
void fix_way(Way way) noexcept;
void defer_only_if_asked() noexcept;

}  // namespace haul::preload
