#include "base/os/descriptor.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/os/raw_file.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {

FileId file_id(int fd) noexcept {
  const KeepErrno keep;
  struct stat status {};
  // (Not by the C library's fstat(), which asks by way of an empty path. Before Linux 6.11 that
  // takes the kernel several times as long.)
  if (fd < 0 || syscall(SYS_fstat, fd, &status) != 0) return FileId{};
  return FileId{status.st_dev, status.st_ino};
}

int above_streams(int fd) noexcept {
  const KeepErrno keep;
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const Uncancelled guard;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  raw_close(fd);
  return moved < 0 ? -error : moved;
}

int close_with(int fd, int error) noexcept {
  close(fd);
  return -error;
}

Descriptor Descriptor::of(int fd) noexcept {
  Descriptor made;
  if (fd < 0) return made;
  made.number_ = fd;
  made.id_ = file_id(fd);
  return made;
}

void Descriptor::close() noexcept {
  if (intact()) close_fd(number_);
  *this = Descriptor();
}

int Descriptor::release() noexcept {
  const int number = number_;
  *this = Descriptor();
  return number;
}

}  // namespace haul::os
