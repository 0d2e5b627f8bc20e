#include "atomic/link/udp_socket.hpp"

#include <sys/time.h>

#include <cerrno>

#include "base/keep_errno.hpp"
#include "base/os.hpp"

namespace haul::atomics {

int UdpSocket::open(const Address& at) noexcept {
  const KeepErrno keep;
  close();
  fd_ = socket(at.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return -errno;
  local_ = at;
  socklen_t length = sizeof local_.six;
  if (bind(fd_, &local_.any, at.bytes()) != 0 || getsockname(fd_, &local_.any, &length) != 0) {
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
  const ssize_t sent = sendto(fd_, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL, &to.any, to.bytes());
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
