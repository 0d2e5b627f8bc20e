// System calls about other processes, and descriptors that wake and lock.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/keep_errno.hpp"
#include "base/os.hpp"

namespace haul::os {

int run_program(const char* const* arguments) noexcept {
  const KeepErrno keep;
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  if (posix_spawn_file_actions_init(&files) != 0) return -ENOMEM;
  if (posix_spawnattr_init(&attributes) != 0) {
    posix_spawn_file_actions_destroy(&files);
    return -ENOMEM;
  }
  for (const int fd : {0, 1, 2})
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", fd == 0 ? O_RDONLY : O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &files, &attributes,
                                  const_cast<char* const*>(arguments), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return -failed;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno == ECHILD) return 0;  // the program reaped it
    if (errno != EINTR) return -errno;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

int pidfd_open(pid_t pid) noexcept {
  const KeepErrno keep;
  const long fd = syscall(SYS_pidfd_open, pid, 0);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

int take_descriptor(pid_t pid, int fd) noexcept {
  const KeepErrno keep;
  const int pidfd = pidfd_open(pid);
  if (pidfd < 0) return pidfd;
  const long taken = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
  const int error = errno;
  close(pidfd);
  return taken < 0 ? -error : static_cast<int>(taken);
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
