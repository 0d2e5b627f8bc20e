// Files by bare system calls, for threads that may have a descriptor table of their own
// (apart.hpp). ThreadSanitizer, in the program or in haul, intercepts libc's calls and knows one
// table a process: it would take the same number in two tables for one file, and report a data
// race.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>

namespace haul::os {

// Like libc's functions of these names, errno included, but not cancellation points.
inline int raw_open(const char* path, int flags, mode_t mode = 0) noexcept {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

inline ssize_t raw_read(int fd, void* data, std::size_t size) noexcept {
  return syscall(SYS_read, fd, data, size);
}

inline ssize_t raw_write(int fd, const void* data, std::size_t size) noexcept {
  return syscall(SYS_write, fd, data, size);
}

inline void raw_close(int fd) noexcept {
  syscall(SYS_close, fd);
}

}  // namespace haul::os
