#include "atomic/link/udp_socket.hpp"

#include <sys/time.h>

#include <cerrno>
#include <cstring>

#include "base/keep_errno.hpp"
#include "base/os.hpp"

namespace haul::atomics {

int UdpSocket::open(const Address& at) noexcept {
  if (at.any.sa_family == AF_INET || !at.is_wildcard()) return open_at(at, nullptr);
  Address all;
  parse_host("::", at.port(), &all);
  const int error = open_at(all, nullptr);
  if (error != -EAFNOSUPPORT && error != -EADDRNOTAVAIL) return error;
  parse_host("0.0.0.0", at.port(), &all);
  return open_at(all, nullptr);
}

int UdpSocket::open_six(const char* interface, std::uint16_t port) noexcept {
  Address all;
  parse_host("::", port, &all);
  return open_at(all, interface);
}

int UdpSocket::open_at(const Address& at, const char* interface) noexcept {
  const KeepErrno keep;
  close();
  fd_ = socket(at.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return -errno;
  local_ = at;
  both_ = at.is_six() && at.is_wildcard() && interface == nullptr;
  const int only_six = both_ ? 0 : 1;
  const auto name_bytes = static_cast<socklen_t>(interface != nullptr ? std::strlen(interface) : 0);
  socklen_t length = sizeof local_.six;
  if ((at.is_six() &&
       setsockopt(fd_, IPPROTO_IPV6, IPV6_V6ONLY, &only_six, sizeof only_six) != 0) ||
      (interface != nullptr &&
       setsockopt(fd_, SOL_SOCKET, SO_BINDTODEVICE, interface, name_bytes) != 0) ||
      bind(fd_, &local_.any, at.bytes()) != 0 || getsockname(fd_, &local_.any, &length) != 0) {
    const int error = -errno;
    close();
    return error;
  }
  // Many clients may send at once.
  const int bytes = 4 << 20;
  setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  return 0;
}

void UdpSocket::close() noexcept {
  if (fd_ >= 0) os::close_fd(fd_);
  fd_ = -1;
}

ssize_t UdpSocket::send(const void* data, std::size_t bytes, const Address& to) noexcept {
  const KeepErrno keep;
  const Address& there = both_ && !to.is_six() ? as_six(to) : to;
  const ssize_t sent =
      sendto(fd_, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL, &there.any, there.bytes());
  return sent >= 0 ? sent : -errno;
}

ssize_t UdpSocket::receive(void* data, std::size_t bytes, Address* from, bool wait) noexcept {
  const KeepErrno keep;
  Address ignored;
  Address& source = from != nullptr ? *from : ignored;
  socklen_t length = sizeof source.six;
  const int flags = MSG_TRUNC | (wait ? 0 : MSG_DONTWAIT);
  const ssize_t got = recvfrom(fd_, data, bytes, flags, &source.any, &length);
  if (got < 0) return -errno;
  if (both_) source = as_four(source);
  return static_cast<std::size_t>(got) > bytes ? -EMSGSIZE : got;
}

void UdpSocket::receive_timeout_ms(unsigned timeout_ms) noexcept {
  const KeepErrno keep;
  timeval time{};
  time.tv_sec = timeout_ms / 1000;
  time.tv_usec = timeout_ms % 1000 * 1000;
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

}  // namespace haul::atomics
