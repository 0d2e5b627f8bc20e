// A UDP socket, non-blocking and close-on-exec.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "atomic/link/address.hpp"

namespace haul::atomics {

class UdpSocket {
 public:
  UdpSocket() noexcept = default;
  ~UdpSocket() { close(); }
  UdpSocket(const UdpSocket&) = delete;
  UdpSocket& operator=(const UdpSocket&) = delete;

  // Bound to `at`; its port 0: the kernel chooses one, local() tells. All addresses: of both
  // families, or of IPv4 where the kernel has no other. 0 or -errno.
  int open(const Address& at) noexcept;
  // Bound to all IPv6 addresses of one interface, those that it gets later, too. 0 or -errno.
  int open_six(const char* interface, std::uint16_t port) noexcept;
  void close() noexcept;
  bool is_open() const noexcept { return fd_ >= 0; }
  int fd() const noexcept { return fd_; }
  const Address& local() const noexcept { return local_; }
  // Can it send there, as far as families go?
  bool reaches(const Address& to) const noexcept { return both_ || to.is_six() == local_.is_six(); }

  // Bytes or -errno. A full queue and an ICMP error of an earlier packet are losses as any other.
  ssize_t send(const void* data, std::size_t bytes, const Address& to) noexcept;
  // Bytes, -EAGAIN if nothing is there, -EMSGSIZE if it is longer, or -errno. `from` may be
  // nullptr. `wait`: sleeps until something is there or receive_timeout_ms() is over.
  ssize_t receive(void* data, std::size_t bytes, Address* from, bool wait = false) noexcept;
  void receive_timeout_ms(unsigned timeout_ms) noexcept;

 private:
  int open_at(const Address& at, const char* interface) noexcept;

  int fd_ = -1;
  bool both_ = false;  // of IPv6, and speaks IPv4 as well
  Address local_;
};

}  // namespace haul::atomics
