// What haul.fill() fills with: a value of the destination's element type, or bytes as they are.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "python/src/sides/export.hpp"

namespace haul_python {

struct Pattern {
  std::uint64_t word = 0;
  std::uint8_t bytes = 1;
};

// Raises TypeError or ValueError where the value is none of that type, or no 1, 2, 4 or 8 bytes.
Pattern read_pattern(nb::handle value, const ItemType& type);

}  // namespace haul_python
