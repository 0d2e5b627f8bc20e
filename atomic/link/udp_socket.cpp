#include "atomic/link/udp_socket.hpp"

#include <sys/time.h>

#include <cerrno>
#include <cstring>

#include "base/machine/clock.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/thread/uncancelled.hpp"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

namespace haul::atomics {

namespace {

// A socket whose port is taken may get it back some day, but that is not tried for each packet.
constexpr std::uint64_t between_tries_ns = 20'000'000;

std::uint64_t network_of(int fd) noexcept {
  std::uint64_t cookie = 0;
  socklen_t length = sizeof cookie;
  return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &length) == 0 ? cookie : 0;
}

}  // namespace

int UdpSocket::open(const SocketAddress& at) noexcept {
  if (at.any.sa_family == AF_INET || !at.is_wildcard()) return open_at(at, nullptr);
  SocketAddress all;
  parse_host("::", at.port(), &all);
  const int error = open_at(all, nullptr);
  if (error != -EAFNOSUPPORT && error != -EADDRNOTAVAIL) return error;
  parse_host("0.0.0.0", at.port(), &all);
  return open_at(all, nullptr);
}

int UdpSocket::open_six(const char* interface, std::uint16_t port) noexcept {
  SocketAddress all;
  parse_host("::", port, &all);
  return open_at(all, interface);
}

int UdpSocket::open_at(const SocketAddress& at, const char* interface) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  local_ = at;
  const int error = open_unguarded(interface, &local_);
  if (error != 0) close();
  return error;
}

int UdpSocket::open_unguarded(const char* interface, SocketAddress* at) noexcept {
  close();
  const int made = socket(at->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int fd = made < 0 ? -errno : os::above_streams(made);
  if (fd < 0) return fd;
  fd_ = KnownDescriptor(os::Descriptor::of(fd));
  both_ = at->is_six() && at->is_wildcard() && interface == nullptr;
  const int only_six = both_ ? 0 : 1;
  std::strncpy(interface_, interface != nullptr ? interface : "", sizeof interface_ - 1);
  const auto name_bytes = static_cast<socklen_t>(std::strlen(interface_));
  socklen_t length = sizeof at->six;
  if ((at->is_six() &&
       setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_six, sizeof only_six) != 0) ||
      (name_bytes != 0 &&
       setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface_, name_bytes) != 0) ||
      bind(fd, &at->any, at->bytes()) != 0 || getsockname(fd, &at->any, &length) != 0) {
    return -errno;
  }
  // Many clients may send at once.
  const int bytes = 4 << 20;
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  network_ = network_of(fd);
  return 0;
}

void UdpSocket::close() noexcept {
  fd_.close();
}

bool UdpSocket::is_ours() noexcept {
  if (fd_.is_ours()) return true;
  if (!is_open() || (lost_ && now_ns() - tried_ns_ < between_tries_ns)) return false;
  pthread_mutex_lock(&replacing_);
  lost_ = !open_anew();
  pthread_mutex_unlock(&replacing_);
  return !lost_;
}

bool UdpSocket::open_anew() noexcept {
  const Uncancelled guard;
  tried_ns_ = now_ns();
  // The number is somebody else's; the address, the port and the namespace must be those of before.
  const KnownDescriptor before = fd_;
  const std::uint64_t network = network_;
  SocketAddress local = local_;  // which others may read meanwhile, and which stays
  char interface[IFNAMSIZ];
  std::memcpy(interface, interface_, sizeof interface);
  const unsigned timeout_ms = timeout_ms_;
  int error = open_unguarded(interface[0] != '\0' ? interface : nullptr, &local);
  if (error == 0 && network_ != network) error = -ENONET;
  if (error == 0) {
    if (timeout_ms != 0) receive_timeout_ms(timeout_ms);
    return true;
  }
  fd_.close();
  fd_ = before;
  network_ = network;
  return false;
}

ssize_t UdpSocket::send(const void* data, std::size_t bytes, const SocketAddress& to) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const SocketAddress& there = both_ && !to.is_six() ? as_six(to) : to;
  if (!is_ours()) return -EBADF;
  const ssize_t sent =
      sendto(fd_.number(), data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL, &there.any, there.bytes());
  return sent >= 0 ? sent : -errno;
}

ssize_t UdpSocket::receive(void* data, std::size_t bytes, SocketAddress* from, bool wait) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  if (!is_ours()) return -EBADF;
  SocketAddress ignored;
  SocketAddress& source = from != nullptr ? *from : ignored;
  socklen_t length = sizeof source.six;
  int flags = MSG_TRUNC | (wait ? 0 : MSG_DONTWAIT);
  // (The kernel holds the socket of a receive() that sleeps from the moment that it began.)
  if (looks_first_ && !wait) {
    if (recvfrom(fd_.number(), nullptr, 0, flags | MSG_PEEK, nullptr, nullptr) < 0) return -errno;
    if (!fd_.look(now_ns())) return -EAGAIN;
    flags |= MSG_DONTWAIT;
  }
  const ssize_t got = recvfrom(fd_.number(), data, bytes, flags, &source.any, &length);
  if (got < 0) return -errno;
  if (both_) source = as_four(source);
  return static_cast<std::size_t>(got) > bytes ? -EMSGSIZE : got;
}

void UdpSocket::receive_timeout_ms(unsigned timeout_ms) noexcept {
  const KeepErrno keep;
  timeval time{};
  time.tv_sec = timeout_ms / 1000;
  time.tv_usec = timeout_ms % 1000 * 1000;
  timeout_ms_ = timeout_ms;
  setsockopt(fd_.fd().get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

void UdpSocket::shut() noexcept {
  const KeepErrno keep;
  pthread_mutex_lock(&replacing_);
  shutdown(fd(), SHUT_RD);
  pthread_mutex_unlock(&replacing_);
}

}  // namespace haul::atomics
