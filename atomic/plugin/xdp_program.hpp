// The contract of the plug-in libhaul-atomic-xdp.so, which uses libbpf: it loads the XDP program,
// attaches it to an interface, and makes windows' memory. Both libraries are of one haul version.
#pragma once

#include <cstddef>
#include <cstdint>

#include "atomic/plugin/plugin.hpp"
#include "atomic/wire/completion.h"
#include "atomic/wire/xdp_facts.h"
#include "base/error.hpp"

namespace haul::atomics {

enum class XdpMode : std::uint8_t { automatic, native, generic };

struct XdpOptions {
  unsigned interface = 0;  // 0: none, the program is only loaded
  XdpMode mode = XdpMode::automatic;
  std::uint32_t address = 0;                // network order, as the ports
  std::uint16_t port = 0, client_port = 0;  // 0: serves nobody; hears nobody
  unsigned sessions = 1, connections = 1;
};

// One program on one interface. Thread-safe but for close().
class XdpProgram {
 public:
  // A window's memory: a descriptor to be mapped (the caller's to close), or -1 and *error.
  virtual int make_memory(std::size_t pages, Error* error) noexcept = 0;
  virtual bool add_window(unsigned index, const window_entry& window, int memory_fd,
                          Error* error) noexcept = 0;
  virtual void remove_window(unsigned index) noexcept = 0;
  // The completion map's element; nullptr beyond its end.
  virtual completion_slot* slot(unsigned cookie) noexcept = 0;
  // Serves a packet that the kernel has received: the program runs on a frame made of it. Bytes of
  // the answer, written over it, or 0.
  virtual std::size_t serve(void* packet, std::size_t bytes, std::uint32_t source_address,
                            std::uint16_t source_port) noexcept = 0;
  // XDP_EVENTS counters.
  virtual void counts(std::uint64_t* counters) noexcept = 0;
  virtual bool is_native() const noexcept = 0;
  // False: the process has closed its descriptors, and the program serves no more.
  virtual bool is_intact() const noexcept = 0;
  // Detaches the program and frees this. (So does the end of the process.)
  virtual void close() noexcept = 0;

 protected:
  ~XdpProgram() = default;
};

// The plug-in's one function. nullptr and *error.
using OpenXdp = XdpProgram* (*)(const XdpOptions& options, Error* error) noexcept;
inline constexpr Plugin xdp_plugin{
    "libhaul-atomic-xdp.so", "haul_atomic_xdp_open",
    "install haul-plugin-atomic-xdp, or build haul with libbpf-dev and clang"};

// Opens the plug-in, and then the program. nullptr and *error.
XdpProgram* open_xdp(const XdpOptions& options, Error* error) noexcept;

}  // namespace haul::atomics
