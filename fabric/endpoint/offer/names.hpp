// How programs name endpoints in text: by an address as fi_av_straddr() prints it, or by a host and
// a port (fi_getinfo's node and service).
#pragma once

#include <cstddef>

#include "fabric/protocol/address.hpp"

namespace haul::fabric {

inline constexpr char address_scheme[] = "haul://";
inline constexpr std::size_t address_text_bytes =
    sizeof address_scheme + 2 * sizeof(Address);  // with the NUL

void print_address(const Address& address, char (&text)[address_text_bytes]) noexcept;
// False if the text is no such address.
bool read_address(const char* text, Address* address) noexcept;
// An address as programs hand it over, anywhere in memory. False if it is not one of haul's.
bool copy_address(const void* from, std::size_t bytes, Address* address) noexcept;

// What node and service name (either may be nullptr). A host must be this one; its port names one
// of its endpoints, whether or not it is open. `local`: the address that an endpoint of this
// process is to have, for which a host alone will do. `numeric`: no resolver is asked
// (FI_NUMERICHOST). False: they name nothing.
bool resolve(const char* node, const char* service, bool local, bool numeric,
             Address* address) noexcept;

}  // namespace haul::fabric
