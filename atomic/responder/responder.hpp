// The contract of a responder, which executes what others ask of a node's windows. A thread
// (host.hpp), an XDP program (xdp.hpp) and a fabric's endpoint (fabric.hpp) implement it, and so
// does the responder of a node "none", which serves nobody (no_responder.hpp). A node holds one,
// and knows only this contract.
//
// All make the same promise to a client: an operation is executed once, whatever the network lost,
// repeated or reordered (wire/serve.h, or the fabric's own protocol). The promise to the owner:
// nothing touches a window's memory before add_window(), nor after remove_window() has returned.
#pragma once

#include <haul/atomic.h>

#include <cstddef>
#include <cstdint>

#include "atomic/wire/tables.h"
#include "base/error.hpp"

namespace haul::atomics {

inline constexpr unsigned max_windows = 256;  // of one node

constexpr std::size_t pages_of(std::size_t bytes) noexcept {
  return (bytes + 4095) / 4096;
}

// A window's memory: whole pages, mapped here, and the descriptor that they are of.
struct WindowMemory {
  char* at = nullptr;
  std::size_t mapped_bytes = 0;
  int fd = -1;
};

// Thread-safe but for close().
class Responder {
 public:
  // Ends the service and frees the responder, after the node's carrier has ended. Blocks for a
  // moment.
  virtual void close() noexcept = 0;

  // False: the node has no windows.
  virtual bool serves() const noexcept { return true; }
  // The program has closed the descriptors by which this serves, and they cannot be opened again.
  virtual bool is_lost() const noexcept { return false; }
  // Whether its operations and those of this host's CPUs are atomic with each other.
  virtual bool is_atomic_with_cpu() const noexcept { return true; }

  // Memory for a window of so many bytes: a descriptor to be mapped (the caller's to close), or -1
  // and *error.
  virtual int make_memory(std::size_t bytes, Error* error) noexcept;
  // Serves a window by this name from now on; a fabric puts its own host and key into the name.
  virtual bool add_window(const WindowMemory& memory, haul_atomic_window_name* name,
                          Error* error) noexcept = 0;
  virtual void remove_window(unsigned index) noexcept = 0;

  // Adds what it has counted to XDP_EVENTS counters.
  virtual void count(std::uint64_t*) noexcept {}

  // Sockets whose packets the node's attendant brings: it sleeps on them (-1: not on this one), and
  // has each looked at when something may have come.
  static constexpr unsigned most_sockets = 2;
  virtual int socket_fd(unsigned) noexcept { return -1; }
  virtual void serve_socket(unsigned) noexcept {}

 protected:
  ~Responder() = default;
};

inline window_entry entry_of(const haul_atomic_window_name& name) noexcept {
  return {name.key, name.address, name.bytes};
}

// A thread of a node could not be made, for this reason.
Error no_thread(int sys_errno) noexcept;

}  // namespace haul::atomics
