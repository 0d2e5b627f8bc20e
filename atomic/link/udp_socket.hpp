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

  // Bound to `at`; its port 0: the kernel chooses one, local() tells. 0 or -errno.
  int open(const Address& at) noexcept;
  void close() noexcept;
  bool is_open() const noexcept { return fd_ >= 0; }
  int fd() const noexcept { return fd_; }
  const Address& local() const noexcept { return local_; }

  // Bytes or -errno. A full queue and an ICMP error of an earlier packet are losses as any other.
  ssize_t send(const void* data, std::size_t bytes, const Address& to) noexcept;
  // Bytes, -EAGAIN if nothing is there, -EMSGSIZE if it is longer, or -errno. `from` may be
  // nullptr. `wait`: sleeps until something is there or receive_timeout_ms() is over.
  ssize_t receive(void* data, std::size_t bytes, Address* from, bool wait = false) noexcept;
  void receive_timeout_ms(unsigned timeout_ms) noexcept;

 private:
  int fd_ = -1;
  Address local_;
};

}  // namespace haul::atomics
