// Which endpoint an address means, and the name of its socket.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/protocol/address.hpp"

namespace haul::fabric {

// A hash of the kernel's boot id and of the network namespace: two processes with the same value
// see each other's sockets. It stays the same as long as the process stays in its namespace.
std::uint64_t host_identity() noexcept;

// A new endpoint's: random id, this host. False if the kernel has no random numbers.
bool make_address(Address* address) noexcept;

// The endpoint of this host that a port names, which programs may agree on beforehand. It is
// reached within its node only: a program that looks it up by its port learns none of its places.
// Port 0: an address of this host that names no endpoint, so that an endpoint with a new one is
// opened.
Address address_of_port(std::uint16_t port) noexcept;
bool names_an_endpoint(const Address& address) noexcept;

// The name of an endpoint's socket.
inline constexpr std::size_t name_bytes = 80;
void socket_name(const Address& address, char (&name)[name_bytes]) noexcept;

}  // namespace haul::fabric
