// First writes to pages of shared memory that exist but that this process has not mapped yet.
//
// The kernel maps one page for a fault that writes, and for one that reads all pages around it that
// exist, writable, too, up to 64 KiB (its fault_around_bytes). So a byte of each 64 KiB is read
// before they are written, which takes a sixth of the time (docs/design/messages.md). Where the
// pages are mapped already, that is a line a 64 KiB.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::fabric {

inline constexpr std::size_t fault_around_bytes = std::size_t{64} << 10;

// [address, address + bytes) must be readable; it lies in a shared mapping of a file. Async-signal-
// safe; blocks for the page faults.
inline void fault_around(const void* address, std::size_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(address), end = begin + bytes;
  for (std::uintptr_t at = begin; at < end; at = (at | (fault_around_bytes - 1)) + 1)
    static_cast<void>(*reinterpret_cast<const volatile std::byte*>(at));
}

}  // namespace haul::fabric
