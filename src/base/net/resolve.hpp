// Names of hosts and services.
#pragma once

#include <cstdint>

namespace haul::os {

// Does a host's name or address mean the host that this process runs on? It does if it is NULL,
// this host's name, an address of one of its interfaces, or a name that resolves to one. `numeric`:
// takes addresses only, and asks no resolver; otherwise it may wait for a name server for as long
// as that takes.
bool is_this_host(const char* node, bool numeric) noexcept;

// The port that a service name or a decimal number means; 0 if it means none.
std::uint16_t port_of(const char* service) noexcept;

}  // namespace haul::os
