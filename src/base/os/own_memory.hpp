// What this process may do with its own memory, and writing there in spite of it.
//
// Each function is one system call or three, on whole pages where it says so, from any thread; all
// are async-signal-safe. The first two pass by libc, since libhaul-mem.so takes its mprotect()
// over.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::os {

enum class MemoryRights : std::uint8_t { none, read, read_write };

// Gives whole pages these rights: mprotect(). 0 or -errno: ENOMEM where the process has as many
// mappings as it may have, or nothing is mapped there.
int set_rights(std::uintptr_t begin, std::size_t bytes, MemoryRights rights) noexcept;

// May this byte be read, or written, as an instruction would now? The page is made if it is missing
// (MADV_POPULATE_READ, MADV_POPULATE_WRITE, Linux 5.14).
bool may_touch(std::uintptr_t address, bool write) noexcept;

// Copies to private memory of this process whatever its rights are, through /proc/self/mem: the
// kernel makes missing pages and breaks shared ones, as for a debugger. How many bytes from the
// front, or -errno: EFAULT, the source may not be read; EIO, nothing private is mapped at `to`;
// EACCES, or what the system's administrator has chosen, where such writes are forbidden; EMFILE,
// since it opens a file. 3 us and 0.3 to 0.9 ms a MiB.
std::int64_t force_write(std::uintptr_t to, std::uintptr_t from, std::size_t bytes) noexcept;

}  // namespace haul::os
