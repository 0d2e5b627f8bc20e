// A fabric: one endpoint of libfabric is a node's responder and its carrier at once. The plug-in
// libhaul-atomic-fabric.so, which uses libfabric, opens it; both libraries are of one haul version.
#pragma once

#include <cstdint>

#include "atomic/client/carrier.hpp"
#include "atomic/plugin/plugin.hpp"
#include "atomic/responder/responder.hpp"
#include "base/error.hpp"

namespace haul::atomics {

struct FabricOptions {
  char provider[64] = {};
  char place[64] = {};     // a numeric address of this host, or a domain; "": the provider chooses
  std::uint16_t port = 0;  // where the provider has ports
  Carrier::Options client;
};

// The endpoint's two sides: one object, which Responder::close() frees.
struct FabricSides {
  Responder* responder = nullptr;
  Carrier* carrier = nullptr;
  haul_atomic_window_name name{};  // the host and port of its windows' names
  const char* description = "";    // provider, address, and whose atomics these are; the object's
};

// The plug-in's one function. False and *error.
using OpenFabric = bool (*)(const FabricOptions& options, FabricSides* sides,
                            Error* error) noexcept;
inline constexpr Plugin fabric_plugin{
    "libhaul-atomic-fabric.so", "haul_atomic_fabric_open",
    "install haul-plugin-atomic-fabric, or build haul with libfabric-dev"};

// Opens the plug-in, and then the endpoint. False and *error.
bool open_fabric(const FabricOptions& options, FabricSides* sides, Error* error) noexcept;

}  // namespace haul::atomics
