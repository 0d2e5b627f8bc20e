// The way to an IPv4 address, as the kernel's routing and neighbour tables have it.
#pragma once

#include <cstdint>

namespace haul::atomics {

struct NextHop {
  unsigned interface = 0;
  std::uint32_t source = 0;   // our address on it; network order
  unsigned char mac[6] = {};  // of the host, or of the gateway
};

// A descriptor for asking these tables of the caller's network namespace, or -errno.
int open_ways() noexcept;
// False if there is no route, or the next hop's MAC address is not known (yet): something that the
// kernel sends there makes it known.
bool find_way_to(int ways, std::uint32_t address, NextHop* way) noexcept;

}  // namespace haul::atomics
