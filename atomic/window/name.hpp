// Names of windows as one word of text.
#pragma once

#include <haul/atomic.h>

#include <cstddef>

#include "base/error.hpp"

namespace haul::atomics {

// False: no room.
bool format_name(const haul_window_name& name, char* text, std::size_t bytes) noexcept;
// False: no name.
bool parse_name(const char* text, haul_window_name* name) noexcept;

}  // namespace haul::atomics
