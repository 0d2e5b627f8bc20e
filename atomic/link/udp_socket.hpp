// A UDP socket, non-blocking and close-on-exec, in a process that may close it, or put a file of
// its own at its number, at any time. Then the socket is opened again at its address and port, and
// its users notice nothing.
#pragma once

#include <net/if.h>
#include <pthread.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "atomic/link/known_descriptor.hpp"
#include "atomic/link/socket_address.hpp"

namespace haul::atomics {

// Not thread-safe, but for shut() beside a receive() that waits, and local(), which a socket that
// is opened again keeps.
class UdpSocket {
 public:
  UdpSocket() noexcept = default;
  ~UdpSocket() { close(); }
  UdpSocket(const UdpSocket&) = delete;
  UdpSocket& operator=(const UdpSocket&) = delete;

  // Bound to `at`; its port 0: the kernel chooses one, local() tells. All addresses: of both
  // families, or of IPv4 where the kernel has no other. 0 or -errno.
  int open(const SocketAddress& at) noexcept;
  // Bound to all IPv6 addresses of one interface, those that it gets later, too. 0 or -errno.
  int open_six(const char* interface, std::uint16_t port) noexcept;
  void close() noexcept;
  bool is_open() const noexcept { return fd_.fd().valid(); }
  // The program has closed it, and another one has its port.
  bool is_lost() const noexcept { return lost_; }
  // For one poll(); -1 if there is no socket that is ours.
  int fd() const noexcept { return fd_.fd().get(); }
  const SocketAddress& local() const noexcept { return local_; }
  // Whether it can send there, as far as address families go.
  bool reaches(const SocketAddress& to) const noexcept {
    return both_ || to.is_six() == local_.is_six();
  }

  // Bytes or -errno. A full queue and an ICMP error of an earlier packet are losses as any other.
  // -EBADF: lost, as below.
  ssize_t send(const void* data, std::size_t bytes, const SocketAddress& to) noexcept;
  // Bytes, -EAGAIN if nothing is there, -EMSGSIZE if it is longer, or -errno; -EBADF: there is no
  // socket, or it is lost (until it can be opened again, which each call tries). `from` may be
  // nullptr. `wait`: sleeps until something is there or receive_timeout_ms() is over.
  ssize_t receive(void* data, std::size_t bytes, SocketAddress* from, bool wait = false) noexcept;
  // For a thread that receives all the time, and so also at the instant when the program puts a
  // socket of its own at the number, which would lose a packet of the program's. From now on
  // receive() looks at the packet, then at whose socket that is, and only then takes the packet.
  void look_before_taking() noexcept { looks_first_ = true; }
  void receive_timeout_ms(unsigned timeout_ms) noexcept;
  // Makes a receive() that waits return, and those that follow.
  void shut() noexcept;

 private:
  int open_at(const SocketAddress& at, const char* interface) noexcept;
  // Puts the port that it got into `at`.
  int open_unguarded(const char* interface, SocketAddress* at) noexcept;
  bool is_ours() noexcept;
  bool open_anew() noexcept;

  KnownDescriptor fd_;
  std::uint64_t network_ = 0;      // the namespace it is of, as the kernel numbers them; 0: unknown
  char interface_[IFNAMSIZ] = {};  // bound to
  unsigned timeout_ms_ = 0;
  bool looks_first_ = false;
  bool both_ = false;  // of IPv6, and speaks IPv4 as well
  bool lost_ = false;
  std::uint64_t tried_ns_ = 0;  // when it was last tried to open it again
  pthread_mutex_t replacing_ = PTHREAD_MUTEX_INITIALIZER;
  SocketAddress local_;
};

}  // namespace haul::atomics
