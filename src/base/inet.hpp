// TCP between nodes: non-blocking, close-on-exec sockets, and this node's addresses. Nothing here
// raises SIGPIPE or waits. Descriptors are closed by os::close_fd().
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace haul::os {

struct InetAddress {
  std::uint8_t bytes[16] = {};  // IPv4: the first four
  bool six = false;
  bool operator==(const InetAddress&) const = default;
};

// What a socket address holds. False for what is no IP address, or one of its link alone.
bool inet_address_of(const sockaddr* generic, InetAddress* address) noexcept;

// Addresses of interfaces that are up, IPv4 before IPv6, link-local ones left out; those of the
// loopback interface if `loopback`, else all others. How many (at most `capacity`), or -errno.
int local_addresses(InetAddress* addresses, unsigned capacity, bool loopback) noexcept;

// A socket that listens at all addresses, at a port of the kernel's choice. fd or -errno.
int listen_inet(std::uint16_t* port) noexcept;
// The next who connected: fd, -EAGAIN if none waits, or -errno.
int accept_inet(int listener) noexcept;
// Begins to connect: fd or -errno.
int connect_inet(const InetAddress& address, std::uint16_t port) noexcept;
// How that went: 0, -EINPROGRESS, or -errno.
int connect_result(int fd) noexcept;

// The address of this end of a connection. False if there is none.
bool own_address(int fd, InetAddress* address) noexcept;
// Small messages leave at once, and a peer whose node has vanished is noticed: after `idle_s`
// seconds of silence `probes` questions, `interval_s` apart, without an answer close it.
void watch_connection(int fd, int idle_s, int interval_s, int probes) noexcept;

// As many bytes as go now; -EAGAIN if none, or -errno.
ssize_t send_stream(int fd, const void* data, std::size_t bytes) noexcept;
// As many as are there; 0 when the other side has closed, -EAGAIN if none, or -errno.
ssize_t receive_stream(int fd, void* data, std::size_t bytes) noexcept;

}  // namespace haul::os
