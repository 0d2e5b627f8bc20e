// The text that haul_atomic_node_open() is given, parsed.
#pragma once

#include <cstdint>

#include "atomic/plugin/xdp_program.hpp"
#include "atomic/responder/host.hpp"

namespace haul::atomics {

struct Specification {
  enum class Kind : std::uint8_t { none, host, xdp, fabric } kind = Kind::none;
  HostMode host_mode = HostMode::block;
  XdpMode xdp_mode = XdpMode::automatic;
  bool has_fallback = false;  // xdp: another responder will do
  char where[64] = {};     // an interface (xdp, none), or an address (host, fabric); may be empty
  char provider[64] = {};  // fabric
};

// False and *error: the text is no responder.
bool parse_specification(const char* text, Specification* specification, Error* error) noexcept;

}  // namespace haul::atomics
