// The node's mover as a process: one thread that copies for every process of a user.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace haul::service {

struct Options {
  // Where to listen; empty: the first place of service_socket_path() that is free.
  std::string socket_path;
  // A socket that listens already (systemd's LISTEN_FDS); socket_path is then for messages only. It
  // stays the caller's.
  int listener = -1;
  // Of its clients' memory, how much stays mapped; 0: mapped and unmapped for each piece.
  std::uint64_t map_budget_bytes = std::uint64_t{64} << 30;
  std::uint64_t idle_exit_ns = 0;               // != 0: end after this long without a client
  std::uint64_t spin_ns = 10'000'000;           // idle for so long, it sleeps
  int cpu = -1;                                 // taken while awake; -1: the last one it may use
  bool lease = true;                            // hold the node's lease of a mover core while awake
  std::function<void(const std::string&)> say;  // lines for people
};

// Runs until it is asked to stop, or until the idle exit. Throws std::runtime_error with a sentence
// of cause and remedy if it cannot start. One at a time in a process; raises the process's soft
// limit of descriptors.
void run(const Options& options);

// Ends run(), also one that begins later. Async-signal-safe; any thread.
void request_stop() noexcept;

}  // namespace haul::service
