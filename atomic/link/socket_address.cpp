#include "atomic/link/socket_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <cerrno>
#include <cstring>

#include "base/os/keep_errno.hpp"

namespace haul::atomics {

std::uint16_t SocketAddress::port() const noexcept {
  return ntohs(is_six() ? six.sin6_port : four.sin_port);
}

void SocketAddress::set_port(std::uint16_t port) noexcept {
  (is_six() ? six.sin6_port : four.sin_port) = htons(port);
}

bool SocketAddress::is_wildcard() const noexcept {
  return is_six() ? IN6_IS_ADDR_UNSPECIFIED(&six.sin6_addr) : four.sin_addr.s_addr == 0;
}

bool SocketAddress::operator==(const SocketAddress& other) const noexcept {
  if (any.sa_family != other.any.sa_family || port() != other.port()) return false;
  if (!is_six()) return four.sin_addr.s_addr == other.four.sin_addr.s_addr;
  return std::memcmp(&six.sin6_addr, &other.six.sin6_addr, sizeof six.sin6_addr) == 0;
}

std::uint64_t SocketAddress::number() const noexcept {
  if (!is_six()) return std::uint64_t{four.sin_addr.s_addr} << 16 | four.sin_port;
  std::uint64_t halves[2];
  std::memcpy(halves, &six.sin6_addr, sizeof halves);
  const std::uint64_t mixed = (halves[0] ^ halves[1] << 1) * 0x9e3779b97f4a7c15ull;
  return (mixed >> 16 | 1ull << 63) ^ six.sin6_port;
}

SocketAddress as_six(const SocketAddress& four) noexcept {
  SocketAddress mapped;
  mapped.six.sin6_family = AF_INET6;
  mapped.six.sin6_port = four.four.sin_port;
  mapped.six.sin6_addr.s6_addr[10] = mapped.six.sin6_addr.s6_addr[11] = 0xff;
  std::memcpy(&mapped.six.sin6_addr.s6_addr[12], &four.four.sin_addr, sizeof four.four.sin_addr);
  return mapped;
}

SocketAddress as_four(const SocketAddress& address) noexcept {
  if (!address.is_six() || !IN6_IS_ADDR_V4MAPPED(&address.six.sin6_addr)) return address;
  SocketAddress four;
  four.four.sin_family = AF_INET;
  four.four.sin_port = address.six.sin6_port;
  std::memcpy(&four.four.sin_addr, &address.six.sin6_addr.s6_addr[12], sizeof four.four.sin_addr);
  return four;
}

bool parse_host(const char* host, std::uint16_t port, SocketAddress* address) noexcept {
  const KeepErrno keep;
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host, nullptr, &hints, &found) != 0) return false;
  const bool fits = found->ai_addrlen <= sizeof address->six;
  if (fits) {
    *address = SocketAddress{};
    std::memcpy(&address->six, found->ai_addr, found->ai_addrlen);
    address->set_port(port);
  }
  freeaddrinfo(found);
  return fits;
}

void format_host(const SocketAddress& address, char* text, std::size_t bytes) noexcept {
  const KeepErrno keep;
  if (getnameinfo(&address.any, address.bytes(), text, static_cast<socklen_t>(bytes), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    text[0] = '\0';
  }
}

namespace {

// The best of those that `fits` accepts: IPv4 before IPv6, link-local ones last.
template <class Fits>
int best_address(Fits fits, SocketAddress* best) noexcept {
  const KeepErrno keep;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return -errno;
  int best_rank = 0;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || !fits(*one)) continue;
    SocketAddress here;
    int rank = 0;
    if (one->ifa_addr->sa_family == AF_INET) {
      std::memcpy(&here.four, one->ifa_addr, sizeof here.four);
      rank = 3;
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      std::memcpy(&here.six, one->ifa_addr, sizeof here.six);
      rank = IN6_IS_ADDR_LINKLOCAL(&here.six.sin6_addr) ? 1 : 2;
    }
    if (rank > best_rank) {
      best_rank = rank;
      *best = here;
      best->set_port(0);
    }
  }
  freeifaddrs(all);
  return best_rank == 0 ? -EADDRNOTAVAIL : 0;
}

}  // namespace

int address_of_interface(const char* name, SocketAddress* address) noexcept {
  {
    const KeepErrno keep;
    if (if_nametoindex(name) == 0) return -ENODEV;
  }
  return best_address([name](const ifaddrs& one) { return std::strcmp(one.ifa_name, name) == 0; },
                      address);
}

void any_own_address(SocketAddress* address) noexcept {
  const auto reachable = [](const ifaddrs& one) {
    return (one.ifa_flags & IFF_UP) != 0 && (one.ifa_flags & IFF_LOOPBACK) == 0;
  };
  if (best_address(reachable, address) != 0) parse_host("127.0.0.1", 0, address);
}

}  // namespace haul::atomics
