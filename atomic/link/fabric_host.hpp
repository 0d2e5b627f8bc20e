// The address of a fabric's endpoint as a window's name has it: host "PROVIDER@10.0.0.2" and a port
// where the provider uses sockets' addresses, else "PROVIDER@=" and the address in base64url, port
// 0.
#pragma once

#include <haul/atomic.h>

#include <cstddef>
#include <cstdint>

namespace haul::atomics {

struct FabricHost {
  static constexpr std::size_t most_bytes = 64;
  char provider[64] = {};
  bool is_socket_address = false;
  std::size_t bytes = 0;
  alignas(8) std::uint8_t address[most_bytes] = {};
};

// Into *name's host and port. False: it does not fit.
bool format_fabric_host(const FabricHost& host, haul_atomic_window_name* name) noexcept;
// From there. False: none.
bool parse_fabric_host(const haul_atomic_window_name& name, FabricHost* host) noexcept;

// Does this provider execute operations by its host's CPU, in software, by atomic instructions?
// Then they and that host's own are atomic with each other; those of a network interface are not.
bool is_atomic_with_cpu(const char* provider) noexcept;

}  // namespace haul::atomics
