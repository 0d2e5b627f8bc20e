// What libhaul-mem.so costs a call of memcpy() that it leaves to libc: this program starts itself
// with and without the library, in turns.
#pragma once

#include <vector>

#include "bench/kit/suite.hpp"

namespace haul::bench {

// Adds a row for 64 B and one for 4 KiB: memcpy_ns without the library, preload_ns with it. Leaves
// them out, with a note, where there is no library.
void race_small_calls(SuiteRun& session, std::vector<Row>& rows);

}  // namespace haul::bench
