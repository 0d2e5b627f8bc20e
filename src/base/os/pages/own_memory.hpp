// What this process may do with its own memory, copying what it may lose at any moment, and writing
// in spite of its rights.
//
// Each function is a few system calls, on whole pages where it says so, from any thread; all are
// async-signal-safe. The first two pass by libc, since libhaul-mem.so takes its mprotect() over.
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

// Is there a limit to how much this process may map, of its own (RLIMIT_AS, RLIMIT_DATA) or of the
// system (vm.overcommit_memory = 2, which is looked at once)? Then what haul maps the program may
// lack.
bool addresses_are_limited() noexcept;

// Copies within this process by the kernel, for memory that the program may unmap meanwhile. How
// many bytes from the front, or -errno: EFAULT, either side is not there; EPERM or ENOSYS, a filter
// refuses the call.
std::int64_t copy_own(std::uintptr_t to, std::uintptr_t from, std::size_t bytes) noexcept;

// Copies to private memory of this process whatever its rights are, through /proc/self/mem: the
// kernel makes missing pages and breaks shared ones, as for a debugger. How many bytes from the
// front, or -errno: EFAULT, the source may not be read; EIO, nothing private is mapped at `to`;
// EACCES, or what the system's administrator has chosen, where such writes are forbidden; EMFILE,
// since it opens a file. 3 us and 0.3 to 0.9 ms a MiB.
std::int64_t force_write(std::uintptr_t to, std::uintptr_t from, std::size_t bytes) noexcept;

}  // namespace haul::os
