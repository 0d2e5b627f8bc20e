// Whether the pages under an address are there, and making them be. Each function is a system call
// or three, on whole pages, from any thread; other threads may use the memory meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::os {

inline constexpr std::size_t page_bytes = 4096;

// Is the page at this address in memory? True also where the kernel does not say, or nothing is
// mapped there. 0.2 to 1 us, by the machine.
bool is_resident(std::uintptr_t page) noexcept;
// Is any page of [page, page + bytes)? Likewise. 1 us for 2 MiB of which none is.
bool any_resident(std::uintptr_t page, std::size_t bytes) noexcept;
// Are all? False where the kernel does not say.
bool all_resident(std::uintptr_t page, std::size_t bytes) noexcept;

// Is the page at this address, which is in memory, private to this process and no file's? False
// where that cannot be told. Opens a file: 3 to 8 us.
bool is_private(std::uintptr_t page) noexcept;

// Provides all pages of [page, page + bytes) as writing to them would, a fifth to a quarter faster
// (MADV_POPULATE_WRITE, Linux 5.14). False where not all could be had, for whatever reason: a write
// then shows it.
bool populate(std::uintptr_t page, std::size_t bytes) noexcept;

// Does the system give huge pages to whom asks for them, and to nobody else ("madvise")? Reads a
// file of sysfs.
bool huge_pages_on_request() noexcept;

}  // namespace haul::os
