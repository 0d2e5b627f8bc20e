// System calls about other processes, and descriptors that wake and lock.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/keep_errno.hpp"
#include "base/os.hpp"

namespace haul::os {

int pidfd_open(pid_t pid) noexcept {
  const KeepErrno keep;
  const long fd = syscall(SYS_pidfd_open, pid, 0);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

bool pidfd_alive(int pidfd) noexcept {
  const KeepErrno keep;
  pollfd entry = {pidfd, POLLIN, 0};
  int ready;
  do {
    ready = poll(&entry, 1, 0);
  } while (ready < 0 && errno == EINTR);
  // poll() passes over a negative descriptor in silence.
  return pidfd >= 0 && ready == 0;
}

void close_fd(int fd) noexcept {
  const KeepErrno keep;
  if (fd >= 0) close(fd);
}

ssize_t read_process(pid_t pid, const iovec* local, std::size_t local_count, const iovec* remote,
                     std::size_t remote_count) noexcept {
  const KeepErrno keep;
  const ssize_t bytes = process_vm_readv(pid, local, local_count, remote, remote_count, 0);
  return bytes < 0 ? -errno : bytes;
}

ssize_t write_process(pid_t pid, const iovec* local, std::size_t local_count, const iovec* remote,
                      std::size_t remote_count) noexcept {
  const KeepErrno keep;
  const ssize_t bytes = process_vm_writev(pid, local, local_count, remote, remote_count, 0);
  return bytes < 0 ? -errno : bytes;
}

int event_fd() noexcept {
  const KeepErrno keep;
  const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  return fd < 0 ? -errno : fd;
}

void event_signal(int fd) noexcept {
  const KeepErrno keep;
  const std::uint64_t one = 1;
  // EAGAIN: the counter is full, hence readable already.
  while (write(fd, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void event_clear(int fd) noexcept {
  const KeepErrno keep;
  std::uint64_t count;
  while (read(fd, &count, sizeof count) < 0 && errno == EINTR) {
  }
}

int bind_abstract(const char* name) noexcept {
  const KeepErrno keep;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::size_t length = strlen(name);
  // With an empty name the kernel would choose one.
  if (length == 0) return -EINVAL;
  if (length > sizeof address.sun_path - 1) return -ENAMETOOLONG;
  memcpy(address.sun_path + 1, name, length);
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  const auto address_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), address_bytes) != 0) {
    const int error = errno;
    close(fd);
    return -error;
  }
  return fd;
}

}  // namespace haul::os
