#include "base/net/inet.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <initializer_list>

#include "base/os/descriptor.hpp"
#include "base/os/keep_errno.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {
namespace {

constexpr int stream_socket = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

int new_socket(int family) noexcept {
  const int fd = socket(family, stream_socket, 0);
  return fd < 0 ? -errno : above_streams(fd);
}

socklen_t make_address(const InetAddress& address, std::uint16_t port,
                       sockaddr_storage* storage) noexcept {
  *storage = {};
  if (address.six) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    memcpy(&six.sin6_addr, address.bytes, 16);
    memcpy(storage, &six, sizeof six);
    return sizeof six;
  }
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  memcpy(&four.sin_addr, address.bytes, 4);
  memcpy(storage, &four, sizeof four);
  return sizeof four;
}

// Makes a bound socket listen: fd, or -errno and fd is closed.
int listen_and_tell(int fd, std::uint16_t* port) noexcept {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  if (listen(fd, SOMAXCONN) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0)
    return close_with(fd, errno);
  sockaddr_in four;  // the port lies at the same place in both
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  memcpy(&four, &storage, sizeof four);
  *port = ntohs(four.sin_port);
  return fd;
}

}  // namespace

bool inet_address_of(const sockaddr* generic, InetAddress* address) noexcept {
  *address = {};
  if (generic == nullptr) return false;
  if (generic->sa_family == AF_INET) {
    sockaddr_in four;
    memcpy(&four, generic, sizeof four);
    memcpy(address->bytes, &four.sin_addr, 4);
    return true;
  }
  if (generic->sa_family != AF_INET6) return false;
  sockaddr_in6 six;
  memcpy(&six, generic, sizeof six);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
    memcpy(address->bytes, six.sin6_addr.s6_addr + 12, 4);
    return true;
  }
  memcpy(address->bytes, &six.sin6_addr, 16);
  address->six = true;
  return !IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr);
}

int local_addresses(InetAddress* addresses, unsigned capacity, bool loopback) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return -errno;
  unsigned count = 0;
  for (const bool six : {false, true}) {
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if ((entry->ifa_flags & IFF_UP) == 0) continue;
      if (((entry->ifa_flags & IFF_LOOPBACK) != 0) != loopback) continue;
      InetAddress address;
      if (count == capacity || !inet_address_of(entry->ifa_addr, &address) || address.six != six)
        continue;
      addresses[count++] = address;
    }
  }
  freeifaddrs(list);
  return static_cast<int>(count);
}

int listen_inet(std::uint16_t* port) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  int fd = new_socket(AF_INET6);
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(sockaddr_in6);
  storage.ss_family = AF_INET6;
  const int off = 0;
  if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0 ||
      bind(fd, reinterpret_cast<const sockaddr*>(&storage), bytes) != 0) {
    if (fd >= 0) close(fd);  // a node without IPv6
    fd = new_socket(AF_INET);
    if (fd < 0) return fd;
    storage.ss_family = AF_INET;
    bytes = sizeof(sockaddr_in);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&storage), bytes) != 0)
      return close_with(fd, errno);
  }
  return listen_and_tell(fd, port);
}

int listen_inet_at(const InetAddress& address, std::uint16_t* port) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int fd = new_socket(address.six ? AF_INET6 : AF_INET);
  if (fd < 0) return fd;
  // Connections of an earlier listener may still rest in TIME_WAIT.
  const int on = 1;
  sockaddr_storage storage;
  const socklen_t bytes = make_address(address, *port, &storage);
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd, reinterpret_cast<const sockaddr*>(&storage), bytes) != 0)
    return close_with(fd, errno);
  return listen_and_tell(fd, port);
}

int accept_inet(int listener) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  return fd < 0 ? -errno : above_streams(fd);
}

int connect_inet(const InetAddress& address, std::uint16_t port) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int fd = new_socket(address.six ? AF_INET6 : AF_INET);
  if (fd < 0) return fd;
  sockaddr_storage storage;
  const socklen_t bytes = make_address(address, port, &storage);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&storage), bytes) != 0 && errno != EINPROGRESS)
    return close_with(fd, errno);
  return fd;
}

int connect_result(int fd) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  pollfd waiting{fd, POLLOUT, 0};
  const int ready = poll(&waiting, 1, 0);
  if (ready < 0) return errno == EINTR ? -EINPROGRESS : -errno;
  if (ready == 0) return -EINPROGRESS;
  int error = 0;
  socklen_t bytes = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) return -errno;
  return -error;
}

bool own_address(int fd, InetAddress* address) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) return false;
  return inet_address_of(reinterpret_cast<const sockaddr*>(&storage), address);
}

void watch_connection(int fd, int idle_s, int interval_s, int probes) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int on = 1;
  const int silence_ms = (idle_s + interval_s * probes) * 1000;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  // Keepalive is silent while data is unacknowledged.
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, sizeof silence_ms);
}

ssize_t send_stream(int fd, const void* data, std::size_t bytes) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  ssize_t sent;
  do {
    sent = send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? -errno : sent;
}

ssize_t receive_stream(int fd, void* data, std::size_t bytes) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  ssize_t received;
  do {
    received = recv(fd, data, bytes, MSG_DONTWAIT);
  } while (received < 0 && errno == EINTR);
  return received < 0 ? -errno : received;
}

}  // namespace haul::os
