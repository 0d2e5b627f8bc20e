// Options of the service.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/log.hpp"

namespace haul::service {

struct Options {
  // Where to listen; empty: the first place of service_socket_path() that is free.
  std::string socket_path;
  // A socket that listens already (systemd's LISTEN_FDS) and stays the caller's; socket_path then
  // only appears in lines for people.
  int listener = -1;
  // How much of its clients' memory stays mapped; 0: mapped and unmapped for each piece.
  std::uint64_t map_budget_bytes = std::uint64_t{64} << 30;
  std::uint64_t idle_exit_ns = 0;      // != 0: end after this long without a client
  std::uint64_t spin_ns = 10'000'000;  // after this long without work it sleeps
  int cpu = -1;                        // taken while awake; -1: the last one it may use
  bool lease = true;                   // hold the node's lease of a mover core while awake
  std::function<void(LogLevel, const std::string&)> say;  // lines for people
  // Called by the service's thread: once it listens (what this throws ends run()), and when it
  // begins to end.
  std::function<void(const std::string& socket_path)> on_listening;
  std::function<void()> on_ending;
};

}  // namespace haul::service
