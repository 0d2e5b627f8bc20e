#include "base/net/socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/os/descriptor.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {
namespace {

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

// `at`: where in sun_path the name begins; 1 for an abstract one, behind its NUL.
int address_of(const char* name, std::size_t at, sockaddr_un* address) noexcept {
  *address = {};
  address->sun_family = AF_UNIX;
  const std::size_t length = strlen(name);
  if (length == 0) return -EINVAL;
  if (length >= sizeof address->sun_path) return -ENAMETOOLONG;
  memcpy(address->sun_path + at, name, length);
  return 0;
}

int new_socket(SocketKind kind = SocketKind::packets) noexcept {
  const int type = kind == SocketKind::packets ? SOCK_SEQPACKET : SOCK_STREAM;
  const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  return fd < 0 ? -errno : above_streams(fd);
}

// A new socket with which begin(fd, address, bytes) has bound to, or connected to, this abstract
// name. The kernel looks at all `bytes` of the address, for NULs count in such names.
template <class Begin>
int open_abstract(const char* name, Begin begin) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  sockaddr_un address;
  if (const int wrong = address_of(name, 1, &address); wrong != 0) return wrong;
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + strlen(name));
  const int fd = new_socket();
  if (fd < 0) return fd;
  const bool begun = begin(fd, reinterpret_cast<const sockaddr*>(&address), bytes) == 0;
  return begun ? fd : close_with(fd, errno);
}

}  // namespace

int packet_socket() noexcept {
  const KeepErrno keep;
  return new_socket();
}

int connect_socket(int fd, const char* path) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  sockaddr_un address;
  if (const int wrong = address_of(path, 0, &address); wrong != 0) return wrong;
  return connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : -errno;
}

int connect_to(const char* path) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int fd = new_socket();
  if (fd < 0) return fd;
  const int failed = connect_socket(fd, path);
  return failed == 0 ? fd : close_with(fd, -failed);
}

int listen_at(const char* path, SocketKind kind) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  sockaddr_un address;
  if (const int wrong = address_of(path, 0, &address); wrong != 0) return wrong;
  const int fd = new_socket(kind);
  if (fd < 0) return fd;
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (bind(fd, generic, sizeof address) != 0) {
    if (errno != EADDRINUSE) return close_with(fd, errno);
    const int other = connect_to(path);
    if (other >= 0) close(other);
    struct stat status {};
    // Only a socket that refuses is stale: -EAGAIN is a busy service, -EPROTOTYPE a live socket of
    // the other kind, another file is not ours.
    if (other != -ECONNREFUSED || lstat(path, &status) != 0 || !S_ISSOCK(status.st_mode))
      return close_with(fd, EADDRINUSE);
    if (unlink(path) != 0 && errno != ENOENT) return close_with(fd, errno);
    if (bind(fd, generic, sizeof address) != 0) return close_with(fd, errno);
  }
  if (chmod(path, 0600) != 0 || listen(fd, 64) != 0) return close_with(fd, errno);
  return fd;
}

int listen_abstract(const char* name, int backlog) noexcept {
  return open_abstract(name, [backlog](int fd, const sockaddr* address, socklen_t bytes) {
    const int failed = bind(fd, address, bytes);
    return failed != 0 ? failed : listen(fd, backlog);
  });
}

int connect_abstract(const char* name) noexcept {
  return open_abstract(name, [](int fd, const sockaddr* address, socklen_t bytes) {
    return connect(fd, address, bytes);
  });
}

int accept_from(int listener) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  return fd < 0 ? -errno : above_streams(fd);
}

bool peer_of(int fd, SocketPeer* peer) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return false;
  peer->pid = credentials.pid;
  peer->uid = credentials.uid;
  return true;
}

int peer_pidfd(int fd) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  int pidfd = -1;
  socklen_t length = sizeof pidfd;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0) return above_streams(pidfd);
  SocketPeer peer;
  return peer_of(fd, &peer) && peer.pid > 0 ? pidfd_open(peer.pid) : -ESRCH;
}

ssize_t send_packet(int fd, const void* data, std::size_t bytes, const int* fds,
                    unsigned fd_count) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  iovec part{const_cast<void*>(data), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(max_packet_fds * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd_count > max_packet_fds) return -EINVAL;
  if (fd_count != 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
    memcpy(CMSG_DATA(header), fds, fd_count * sizeof(int));
  }
  ssize_t sent;
  do {
    sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? -errno : sent;
}

ssize_t receive_packet(int fd, void* data, std::size_t bytes, int* fds,
                       unsigned* fd_count) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  iovec part{data, bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(max_packet_fds * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  *fd_count = 0;
  ssize_t received;
  do {
    received = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return -errno;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int passed = -1;
      memcpy(&passed, CMSG_DATA(header) + i * sizeof(int), sizeof passed);
      if (*fd_count == max_packet_fds) {
        close(passed);
      } else if ((passed = above_streams(passed)) >= 0) {
        fds[(*fd_count)++] = passed;
      }
    }
  }
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    for (; *fd_count != 0; --*fd_count) close(fds[*fd_count - 1]);
    return -EMSGSIZE;
  }
  return received;
}

int wait_readable(int fd, int timeout_ms) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  pollfd entry{fd, POLLIN, 0};
  const int ready = poll(&entry, 1, timeout_ms);
  return ready < 0 ? -errno : ready;
}

void shut_socket(int fd) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  shutdown(fd, SHUT_RDWR);
}

void shut_sending(int fd) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  shutdown(fd, SHUT_WR);
}

}  // namespace haul::os
