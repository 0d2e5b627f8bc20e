// The host's responders: a thread that serves a UDP socket, in one of the three ways of paper 002
// (V-A): poll, spin for a while and then block, block.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "atomic/link/udp_socket.hpp"
#include "atomic/responder/tables.hpp"
#include "base/error.hpp"

namespace haul::atomics {

enum class HostMode : std::uint8_t { poll, spin, block };

class HostResponder {
 public:
  HostResponder() noexcept = default;
  ~HostResponder() { close(); }
  HostResponder(const HostResponder&) = delete;
  HostResponder& operator=(const HostResponder&) = delete;

  struct Options {
    HostMode mode = HostMode::block;
    SocketAddress at;
    unsigned sessions = 256;
    int cpu = -1;
    std::uint64_t spin_ns = 50'000;
  };
  // Starts the thread. ok, invalid (it may not run on `cpu`), or the code and *sys_errno.
  Code open(const Options& options, int* sys_errno) noexcept;
  // Ends it; blocks for a moment.
  void close() noexcept;

  // Where it serves; stays the same.
  const SocketAddress& local() const noexcept { return socket_.local(); }
  // The program has closed its socket, and another process has the port: nobody is served.
  bool is_lost() const noexcept { return is_lost_.load(std::memory_order_relaxed); }
  void add_window(unsigned index, const window_entry& window, char* memory) noexcept;
  // When it returns nobody touches the window's memory any more.
  void remove_window(unsigned index) noexcept;
  std::uint64_t count_of(unsigned event) const noexcept { return tables_.count_of(event); }

 private:
  void serve() noexcept;
  bool serve_one(bool wait) noexcept;

  Options options_;
  UdpSocket socket_;
  Tables tables_;
  pthread_mutex_t windows_ = PTHREAD_MUTEX_INITIALIZER;  // held while a packet is executed
  pthread_t thread_{};
  bool running_ = false;
  std::atomic<bool> stop_{false}, is_lost_{false};
  WirePacket packet_;
};

}  // namespace haul::atomics
