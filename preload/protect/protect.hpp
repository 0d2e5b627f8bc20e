// One call of the program whose memory is protected until its bytes are there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/mem/sites.hpp"

namespace haul::preload {

enum class NotProtected : std::uint8_t {
  protected_,    // none of it: it was
  handled,       // the program handles SIGSEGV, or blocks it
  not_private,   // a side is a file's or shared, may not be written, or holds a stack
  no_mover,      // none takes it now, or too much is pending
  not_writable,  // the kernel does not let a mover write to protected pages, or protect them
};

// Moves what of [dst, dst + length) does not lie in whole pages on both sides by `move`, protects
// the rest and gives it to a mover. Unless it was protected, the caller is to move all of it. The
// calling thread and a mover must know each other. `tally` (may be nullptr) is told what the
// program will have waited for the bytes.
NotProtected protect(std::uintptr_t dst, std::uintptr_t src, std::size_t length,
                     void* (*move)(void*, const void*, std::size_t), WayTally* tally) noexcept;

}  // namespace haul::preload
