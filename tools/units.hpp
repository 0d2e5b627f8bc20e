// Figures with their units, as people read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace haul::tools {

inline constexpr std::size_t kib = 1024, mib = 1024 * kib;
inline constexpr std::uint64_t ns_per_ms = 1'000'000;

std::string show_bytes(std::uint64_t bytes);  // "64 B", "4 KiB", "1.5 MiB"
std::string show_ns(double ns);               // "8.4 ns", "1.2 us", "16.3 ms", "1.25 s"

}  // namespace haul::tools
