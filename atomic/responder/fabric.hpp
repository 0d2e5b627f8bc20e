// What the plug-in libhaul-atomic-fabric.so does (libfabric is there): windows that the network
// interface serves, or a libfabric provider's software, and connections to them. Both libraries are
// of one haul version.
#pragma once

#include <cstddef>
#include <cstdint>

#include "atomic/client/carrier.hpp"
#include "atomic/plugin/plugin.hpp"
#include "base/error.hpp"

namespace haul::atomics {

struct FabricOptions {
  char provider[64] = {};
  char place[64] = {};     // a numeric address of this host, or a domain; "": the provider chooses
  std::uint16_t port = 0;  // where the provider has ports
  Carrier::Options client;
};

// One endpoint: the carrier of its node's connections. Thread-safe but for close().
class Fabric : public Carrier {
 public:
  static constexpr unsigned most_windows = 256;

  // Serves memory (whole pages) from now on: name->kind, host, port and key say how it is reached.
  virtual bool add_window(unsigned index, char* memory, std::size_t bytes,
                          haul_atomic_window_name* name, Error* error) noexcept = 0;
  // When it returns no operation touches the window's memory any more.
  virtual void remove_window(unsigned index) noexcept = 0;
  // One line: provider, address, and whose atomics these are.
  virtual const char* description() const noexcept = 0;
  // The host and port of its names.
  virtual const haul_atomic_window_name& name() const noexcept = 0;
  virtual void close() noexcept = 0;

 protected:
  ~Fabric() = default;
};

// The plug-in's one function. nullptr and *error.
using OpenFabric = Fabric* (*)(const FabricOptions& options, Error* error) noexcept;
inline constexpr Plugin fabric_plugin{"libhaul-atomic-fabric.so", "haul_atomic_fabric_open",
                                      "install libfabric1 and build haul with libfabric-dev"};

// Opens the plug-in, and then the endpoint. nullptr and *error.
Fabric* open_fabric(const FabricOptions& options, Error* error) noexcept;

}  // namespace haul::atomics
