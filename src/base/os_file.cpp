// Whole files: read, and replaced atomically.
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/descriptor.hpp"
#include "base/keep_errno.hpp"
#include "base/os.hpp"
#include "base/raw_file.hpp"
#include "base/uncancelled.hpp"

namespace haul::os {

namespace {

constexpr mode_t file_mode = 0600;
constexpr mode_t directory_mode = 0700;

// The directory of `path` into `directory`, of PATH_MAX bytes as `path` at most is.
void directory_of(const char* path, char* directory) noexcept {
  const char* slash = strrchr(path, '/');
  if (slash == nullptr) {
    memcpy(directory, ".", 2);
    return;
  }
  const std::size_t length = slash == path ? 1 : static_cast<std::size_t>(slash - path);
  memcpy(directory, path, length);
  directory[length] = '\0';
}

// What open() gave, above the standard streams, or -errno.
int opened(int fd) noexcept {
  return fd < 0 ? -errno : above_streams(fd);
}

int make_directory(const char* path) noexcept {
  return mkdir(path, directory_mode) == 0 || errno == EEXIST ? 0 : -errno;
}

// The directory, and where its parent lacks too (a fresh account has no ~/.cache), that one. No
// more: a home that is not there is not ours to make.
int make_directories(const char* directory) noexcept {
  int result = make_directory(directory);
  if (result != -ENOENT) return result;
  char parent[PATH_MAX];
  directory_of(directory, parent);
  result = make_directory(parent);
  return result != 0 ? result : make_directory(directory);
}

int write_and_sync(int fd, const char* data, std::size_t size) noexcept {
  while (size != 0) {
    const ssize_t written = raw_write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return -errno;
    data += written;
    size -= static_cast<std::size_t>(written);
  }
  return syscall(SYS_fsync, fd) == 0 ? 0 : -errno;
}

// Gives the file its temporary name only once it is whole, so that a kill leaves next to nothing.
int write_unnamed(const char* directory, const char* temporary, const char* data,
                  std::size_t size) noexcept {
  const int fd = opened(raw_open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, file_mode));
  if (fd < 0) return fd;
  int result = write_and_sync(fd, data, size);
  if (result == 0) {
    char link[40];
    // Not /proc/self: this thread may have a descriptor table of its own (apart.hpp).
    snprintf(link, sizeof link, "/proc/thread-self/fd/%d", fd);
    if (linkat(AT_FDCWD, link, AT_FDCWD, temporary, AT_SYMLINK_FOLLOW) != 0) result = -errno;
  }
  raw_close(fd);
  return result;
}

// For file systems without O_TMPFILE, and where /proc is not mounted.
int write_named(const char* temporary, const char* data, std::size_t size) noexcept {
  const int fd =
      opened(raw_open(temporary, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, file_mode));
  if (fd < 0) return fd;
  const int result = write_and_sync(fd, data, size);
  raw_close(fd);
  if (result != 0) unlink(temporary);
  return result;
}

}  // namespace

ssize_t read_file(const char* path, char* buffer, std::size_t size) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  if (size == 0) return -EINVAL;
  buffer[0] = '\0';
  // O_NONBLOCK: a FIFO in the file's place must not hang the reader.
  const int fd = opened(raw_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd < 0) return fd;
  std::size_t length = 0;
  ssize_t result = 0;
  while (length < size - 1) {
    const ssize_t bytes = raw_read(fd, buffer + length, size - 1 - length);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) result = -errno;
    if (bytes <= 0) break;
    length += static_cast<std::size_t>(bytes);
  }
  raw_close(fd);
  if (result < 0) length = 0;
  buffer[length] = '\0';
  return result < 0 ? result : static_cast<ssize_t>(length);
}

int write_file(const char* path, const char* data, std::size_t size) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  // Renaming over it would make a plain file of a device or a pipe. (A link is only a name.)
  struct stat seen;
  if (lstat(path, &seen) == 0 && !S_ISREG(seen.st_mode) && !S_ISLNK(seen.st_mode)) {
    return S_ISDIR(seen.st_mode) ? -EISDIR : -ENOTSUP;
  }
  char temporary[PATH_MAX];
  const int length = snprintf(temporary, sizeof temporary, "%s.%d.tmp", path, gettid());
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof temporary) return -ENAMETOOLONG;
  char directory[PATH_MAX];
  directory_of(path, directory);
  if (access(directory, F_OK) != 0 && errno == ENOENT) {
    const int made = make_directories(directory);
    if (made != 0) return made;
  }
  unlink(temporary);  // of a killed process that had this thread's number
  int result = write_unnamed(directory, temporary, data, size);
  if (result != 0) result = write_named(temporary, data, size);
  if (result == 0 && rename(temporary, path) != 0) {
    result = -errno;
    unlink(temporary);
  }
  return result;
}

}  // namespace haul::os
