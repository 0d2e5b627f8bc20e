#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/os/descriptor.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/os/raw_file.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {

namespace {

constexpr mode_t file_mode = 0600;
constexpr mode_t directory_mode = 0700;

// Copies the directory of `path` into `directory`, which has PATH_MAX bytes, as `path` at most has.
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

// Moves what open() returned above the standard streams; fd or -errno.
int opened(int fd) noexcept {
  return fd < 0 ? -errno : above_streams(fd);
}

int make_directory(const char* path) noexcept {
  return mkdir(path, directory_mode) == 0 || errno == EEXIST ? 0 : -errno;
}

// Makes the directory, and its parent if that is missing too (a fresh account has no ~/.cache). No
// more: a home that does not exist is not ours to make.
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

// Names the file only once it is whole, so that a kill leaves next to nothing.
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

bool make_room(int fd, off_t bytes) noexcept {
  int result;
  do {
    result = fallocate(fd, 0, 0, bytes);
  } while (result != 0 && errno == EINTR);
  return result == 0 || (errno == EOPNOTSUPP && ftruncate(fd, bytes) == 0);
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

void program_path(char* path, std::size_t size) noexcept {
  const KeepErrno keep;
  const ssize_t length = readlink("/proc/self/exe", path, size - 1);
  path[length > 0 ? length : 0] = '\0';
}

void remove_file(const char* path) noexcept {
  const KeepErrno keep;
  unlink(path);
}

void* map_new_file(const char* path, std::size_t bytes) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  // Beyond the limit the kernel would not only refuse, but send SIGXFSZ.
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < bytes) return nullptr;
  const int fd = opened(open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, file_mode));
  if (fd < 0) return nullptr;
  void* memory = MAP_FAILED;
  // The file system gives the room now: one that is full would do it by SIGBUS later.
  if (make_room(fd, static_cast<off_t>(bytes)))
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? nullptr : memory;
}

int write_file(const char* path, const char* data, std::size_t size) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  // Renaming over it would turn a device or a pipe into a plain file. (A link is only a name.)
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
  unlink(temporary);  // left by a killed process that had this thread's number
  int result = write_unnamed(directory, temporary, data, size);
  if (result != 0) result = write_named(temporary, data, size);
  if (result == 0 && rename(temporary, path) != 0) {
    result = -errno;
    unlink(temporary);
  }
  return result;
}

}  // namespace haul::os
