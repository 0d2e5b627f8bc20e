// Where a node is: a numeric IPv4 or IPv6 address and a UDP port. Without a family (AF_UNSPEC, as
// constructed) it stands for all addresses of this host.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

namespace haul::atomics {

struct SocketAddress {
  union {
    sockaddr any;
    sockaddr_in four;
    sockaddr_in6 six;
  };
  SocketAddress() noexcept : six{} {}

  bool is_six() const noexcept { return any.sa_family == AF_INET6; }
  // Whether it stands for all addresses of the host.
  bool is_wildcard() const noexcept;
  socklen_t bytes() const noexcept { return is_six() ? sizeof six : sizeof four; }
  std::uint16_t port() const noexcept;  // host order
  void set_port(std::uint16_t port) noexcept;
  bool operator==(const SocketAddress& other) const noexcept;
  // One number for address and port, in which IPv4 ones do not collide (wire/tables.h: source).
  std::uint64_t number() const noexcept;
};

// An IPv4 address as a socket of both families has it (::ffff:10.0.0.2), and back; as_four() leaves
// other addresses as they are.
SocketAddress as_six(const SocketAddress& four) noexcept;
SocketAddress as_four(const SocketAddress& address) noexcept;

// "10.0.0.2", "fe80::1%eth0". False: not numeric.
bool parse_host(const char* host, std::uint16_t port, SocketAddress* address) noexcept;
// The host alone, as text; "" if there is no room.
void format_host(const SocketAddress& address, char* text, std::size_t bytes) noexcept;

// The first IPv4 address of an interface that is up, else its first IPv6 one. -ENODEV: no such
// interface; -EADDRNOTAVAIL: it has none.
int address_of_interface(const char* name, SocketAddress* address) noexcept;
// Any address of this host that others can reach, loopback if there is none.
void any_own_address(SocketAddress* address) noexcept;

}  // namespace haul::atomics
