// Memory with a descriptor and no name: memfds whose size is sealed, and how they are mapped. A
// process that maps one gets no SIGBUS because another process truncated it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "base/os/descriptor.hpp"

namespace haul::os {

// A close-on-exec memfd of `bytes` bytes (sparse: pages are provided when they are touched) that
// nobody can shrink, grow or unseal. fd (never one of 0 to 2, to which a program without standard
// streams would write) or -errno; -EFBIG, and no SIGXFSZ, above file_size_limit(). `name` shows in
// /proc/PID/maps.
int make_sealed(const char* name, std::size_t bytes) noexcept;

// The soft limits of this process; UINT64_MAX without.
std::uint64_t file_size_limit() noexcept;
std::uint64_t address_space_limit() noexcept;
std::uint64_t data_limit() noexcept;  // of private memory that may be written
// How much of the latter is left; UINT64_MAX without a limit.
std::uint64_t address_space_left() noexcept;
// Does the kernel lock new memory, and so fill it in at once (mlockall(MCL_FUTURE))?
bool locks_new_memory() noexcept;

// A memfd that holds `bytes` bytes of data and cannot be written any more. fd or -errno.
int make_sealed_text(const char* name, const void* data, std::size_t bytes) noexcept;
// Reads exactly `bytes` bytes from the front of fd. False if it has fewer or cannot be read.
bool read_front(int fd, void* data, std::size_t bytes) noexcept;

// The size of such memory received from another process; -EINVAL unless it is a memfd that is
// sealed against shrinking, without huge pages and writable: anything else could stall or kill its
// reader.
off_t sealed_bytes(int fd) noexcept;

// Reserves address space alone: inaccessible, free of cost, not locked whatever mlockall() said,
// and left out of core dumps. At a multiple of `alignment`, a power of two. nullptr on failure.
void* reserve(std::size_t bytes, std::size_t alignment = 1) noexcept;
// Maps [offset, offset + bytes) of fd shared and writable at `at` (page-aligned; whatever is mapped
// there is replaced, in one step), or anywhere if `at` is nullptr. nullptr on failure, which leaves
// what was mapped there.
void* map_shared(void* at, std::size_t bytes, int fd, std::uint64_t offset) noexcept;
// Puts the range back into the state of reserve(). False if the kernel lacks memory for that.
bool unmap_to_reserve(void* at, std::size_t bytes) noexcept;
// Maps private zeroed memory at `at` in place of what is there.
bool map_private_at(void* at, std::size_t bytes) noexcept;

// Maps [offset, offset + bytes) of fd privately and writable at `at` in place of what is there: a
// page reads as the file's, also what is written there later, until it is made this process's own
// by a write or by MADV_POPULATE_WRITE.
bool map_copy_at(void* at, std::size_t bytes, int fd, std::uint64_t offset) noexcept;

// Gives the pages of a range back; they read as zero. Whole pages only.
bool punch_hole(int fd, std::uint64_t offset, std::size_t bytes) noexcept;
// The same through a shared mapping, with no descriptor. False also for locked memory (mlock).
bool remove_pages(void* at, std::size_t bytes) noexcept;
// Writes all of data to fd at offset. False on failure.
bool write_at(int fd, const void* data, std::size_t bytes, std::uint64_t offset) noexcept;

// Fills a buffer with the kernel's random bytes. False if it has none.
bool random_bytes(void* buffer, std::size_t bytes) noexcept;

}  // namespace haul::os
