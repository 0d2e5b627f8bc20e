#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "base/os/descriptor.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {
namespace {

// Binds fd to an abstract name of the kernel's choice, and connects it to that.
int connect_to_itself(int fd) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t bytes = sizeof address.sun_family;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd, generic, bytes) != 0) return -errno;
  bytes = sizeof address;
  if (getsockname(fd, generic, &bytes) != 0 || connect(fd, generic, bytes) != 0) return -errno;
  return 0;
}

}  // namespace

int event_fd() noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int fd = made < 0 ? -errno : above_streams(made);
  if (fd < 0) return fd;
  const int failed = connect_to_itself(fd);
  if (failed == 0) return fd;
  close(fd);
  return failed;
}

void event_signal(int fd) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const char word = 1;
  // EAGAIN: the socket is full, hence readable already.
  while (send(fd, &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

void event_clear(int fd) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  char word;
  while (recv(fd, &word, sizeof word, MSG_DONTWAIT) >= 0 || errno == EINTR) {
  }
}

}  // namespace haul::os
