// Sizes in bytes by which tests measure.
#pragma once

#include <cstddef>

inline constexpr std::size_t kib = 1024, mib = 1024 * kib, page = 4096;
