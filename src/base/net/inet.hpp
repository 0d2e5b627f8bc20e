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

// Reads a socket address. False unless it is an IP address that is valid beyond one link.
bool inet_address_of(const sockaddr* generic, InetAddress* address) noexcept;

// Addresses of interfaces that are up, IPv4 before IPv6, link-local ones left out; those of the
// loopback interface if `loopback`, else all others. Returns how many (at most `capacity`), or
// -errno.
int local_addresses(InetAddress* addresses, unsigned capacity, bool loopback) noexcept;

// A socket that listens at all addresses, at a port of the kernel's choice. fd or -errno.
int listen_inet(std::uint16_t* port) noexcept;
// A socket that listens at this address and port alone (0: the kernel's choice, which *port then
// names). fd or -errno.
int listen_inet_at(const InetAddress& address, std::uint16_t* port) noexcept;
// Accepts the next connection: fd, -EAGAIN if none waits, or -errno.
int accept_inet(int listener) noexcept;
// Begins to connect: fd or -errno.
int connect_inet(const InetAddress& address, std::uint16_t port) noexcept;
// The result of connect_inet(): 0, -EINPROGRESS, or -errno.
int connect_result(int fd) noexcept;

// The address of this end of a connection. False if there is none.
bool own_address(int fd, InetAddress* address) noexcept;
// Makes small messages leave at once, and detects a peer whose node has vanished: after `idle_s`
// seconds of silence the connection is closed if `probes` probes, `interval_s` apart, get no
// answer.
void watch_connection(int fd, int idle_s, int interval_s, int probes) noexcept;

// Sends as many bytes as it can now; -EAGAIN if none, or -errno.
ssize_t send_stream(int fd, const void* data, std::size_t bytes) noexcept;
// Receives as many as are there; 0 when the other side has closed, -EAGAIN if none, or -errno.
ssize_t receive_stream(int fd, void* data, std::size_t bytes) noexcept;

}  // namespace haul::os
