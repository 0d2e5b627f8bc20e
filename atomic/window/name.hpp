// Names of windows as one word of text.
#pragma once

#include <haul/atomic.h>

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"

namespace haul::atomics {

// haul_atomic_window_name.kind: what reaches the window.
enum NameKind : std::uint16_t { by_udp = 0, by_fabric = 1 };

// Whether this can be a name. (Its fields may come from anywhere.)
bool is_name(const haul_atomic_window_name& name) noexcept;
// False: no room.
bool format_name(const haul_atomic_window_name& name, char* text, std::size_t bytes) noexcept;
// False: no name.
bool parse_name(const char* text, haul_atomic_window_name* name) noexcept;

}  // namespace haul::atomics
