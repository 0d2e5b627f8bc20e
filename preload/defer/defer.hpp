// One call of the program, deferred: it returns before its bytes are there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/mem/sites.hpp"

namespace haul::preload {

enum class NotDeferred : std::uint8_t {
  deferred,      // none of it: it was
  no_userfault,  // nobody can serve those who touch the memory
  not_private,   // a side is a file's or shared, or the caller's stack
  no_mover,      // none takes it now, or too much is pending
};

// Moves what of [dst, dst + length) shares pages with other memory by `move`, and gives the rest to
// a mover. `may_make`: threads may be made now. Unless it was deferred, the caller is to move all
// of it. The calling thread and a mover must know each other. `tally` (may be nullptr) is told what
// the program will have waited for the bytes.
NotDeferred defer(std::uintptr_t dst, std::uintptr_t src, std::size_t length, bool may_make,
                  void* (*move)(void*, const void*, std::size_t), WayTally* tally) noexcept;

}  // namespace haul::preload
