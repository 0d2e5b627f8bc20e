// Names of hosts and services.
#pragma once

#include <cstdint>

namespace haul::os {

// Whether a name or address of a host means the one that this process runs on: its host name, an
// address of one of its interfaces, or what a resolver says has one. NULL: yes. `numeric`:
// addresses alone, so that nobody is asked. Otherwise it may wait for a name server, as long as
// that takes.
bool is_this_host(const char* node, bool numeric) noexcept;

// The port that a service name or a decimal number means; 0 if it means none.
std::uint16_t port_of(const char* service) noexcept;

}  // namespace haul::os
