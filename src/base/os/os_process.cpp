// System calls about other processes, and the descriptor that locks.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/os/descriptor.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/thread/tasks.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {

int run_program(const char* const* arguments) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
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
    if (errno == ECHILD) return 0;  // the program has reaped it
    if (errno != EINTR) return -errno;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

int pidfd_open(pid_t pid) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const long fd = syscall(SYS_pidfd_open, pid, 0);
  return fd < 0 ? -errno : above_streams(static_cast<int>(fd));
}

int pidfd_signal(int pidfd, int signal) noexcept {
  const KeepErrno keep;
  return syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0 ? 0 : -errno;
}

int take_descriptor(pid_t pid, int fd) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int pidfd = pidfd_open(pid);
  if (pidfd < 0) return pidfd;
  const long taken = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
  const int error = errno;
  close(pidfd);
  return taken < 0 ? -error : above_streams(static_cast<int>(taken));
}

bool pidfd_alive(int pidfd) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  pollfd entry = {pidfd, POLLIN, 0};
  int ready;
  do {
    ready = poll(&entry, 1, 0);
  } while (ready < 0 && errno == EINTR);
  // poll() passes over a negative descriptor in silence.
  return pidfd >= 0 && ready == 0;
}

std::uint64_t process_start(pid_t pid) noexcept {
  const KeepErrno keep;
  char path[32], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  if (read_file(path, text, sizeof text) <= 0) return 0;
  // "pid (name) state ...": the name may hold anything. The start is field 22, the state field 3.
  // A main thread that has ended is a zombie; the process lives while it has others (field 20).
  const char* at = strrchr(text, ')');
  if (at == nullptr || at[1] != ' ') return 0;
  const bool main_ended = at[2] == 'Z' || at[2] == 'X';
  for (int field = 2; field < 22; ++field) {
    at = strchr(at + 1, ' ');
    if (at == nullptr) return 0;
    if (field == 19 && main_ended && strtol(at + 1, nullptr, 10) <= 1) return 0;
  }
  return strtoull(at + 1, nullptr, 10);
}

void close_fd(int fd) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  if (fd >= 0) close(fd);
}

namespace {

// process_vm_readv() or process_vm_writev() with its arguments.
struct Transfer {
  decltype(&process_vm_readv) call;
  const iovec* local;
  std::size_t local_count;
  const iovec* remote;
  std::size_t remote_count;
  ssize_t result = -ESRCH;

  // Transfers by the memory of the process that this thread belongs to.
  void of_thread(pid_t thread) noexcept {
    const ssize_t bytes = call(thread, local, local_count, remote, remote_count, 0);
    result = bytes < 0 ? -errno : bytes;
  }
};

// A main thread that has ended before others has no memory any more, but the process has: the other
// threads'.
ssize_t of_process(pid_t pid, Transfer transfer) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  transfer.of_thread(pid);
  if (transfer.result == -ESRCH) {
    const auto try_thread = [](pid_t thread, void* context) {
      auto& again = *static_cast<Transfer*>(context);
      again.of_thread(thread);
      return again.result == -ESRCH;
    };
    char tasks[32];
    std::snprintf(tasks, sizeof tasks, "/proc/%d/task", static_cast<int>(pid));
    for_each_task(tasks, try_thread, &transfer);
  }
  return transfer.result;
}

}  // namespace

ssize_t read_process(pid_t pid, const iovec* local, std::size_t local_count, const iovec* remote,
                     std::size_t remote_count) noexcept {
  return of_process(pid, {process_vm_readv, local, local_count, remote, remote_count});
}

ssize_t write_process(pid_t pid, const iovec* local, std::size_t local_count, const iovec* remote,
                      std::size_t remote_count) noexcept {
  return of_process(pid, {process_vm_writev, local, local_count, remote, remote_count});
}

int bind_abstract(const char* name) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::size_t length = strlen(name);
  // With an empty name the kernel would choose one.
  if (length == 0) return -EINVAL;
  if (length > sizeof address.sun_path - 1) return -ENAMETOOLONG;
  memcpy(address.sun_path + 1, name, length);
  const int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int fd = made < 0 ? -errno : above_streams(made);
  if (fd < 0) return fd;
  const auto address_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), address_bytes) != 0) {
    const int error = errno;
    close(fd);
    return -error;
  }
  return fd;
}

}  // namespace haul::os
