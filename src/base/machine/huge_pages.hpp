// Huge pages under this process's own memory: making them, and counting them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::os {

inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// Puts the memory in [address, address + bytes), private or a memfd's, on huge pages, whole ones
// only (MADV_COLLAPSE): bytes and addresses stay, and other threads may use them meanwhile. It
// costs a copy, about 0.2 ms a MiB. 0 or -errno (-EINVAL: other memory, or a kernel without it).
int collapse_to_huge(std::uintptr_t address, std::size_t bytes) noexcept;

// The descriptor (close-on-exec) of this process's page map, for huge_bytes(), or -errno. A child
// of fork needs one of its own: this one shows the parent's memory.
int open_page_map() noexcept;

// How many bytes of [address, address + bytes) lie on huge pages; -errno where the kernel cannot
// tell (before Linux 6.7). About 0.2 us a huge page, 1.5 us a MiB of small ones.
std::int64_t huge_bytes(int page_map, std::uintptr_t address, std::size_t bytes) noexcept;

}  // namespace haul::os
