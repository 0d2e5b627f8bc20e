// The host's responders: a thread that serves a UDP socket, in one of the three ways of paper 002
// (V-A): poll, spin for a while and then block, block.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "atomic/link/udp_socket.hpp"
#include "atomic/responder/responder.hpp"
#include "atomic/responder/tables.hpp"
#include "base/error.hpp"

namespace haul::atomics {

enum class HostMode : std::uint8_t { poll, spin, block };

class HostResponder final : public Responder {
 public:
  struct Options {
    HostMode mode = HostMode::block;
    SocketAddress at;
    const char* shown = "";  // the host, in errors
    unsigned sessions = 256;
    int cpu = -1;
    std::uint64_t spin_ns = 50'000;
  };
  // Starts the thread. nullptr and *error.
  static HostResponder* open(const Options& options, Error* error) noexcept;
  void close() noexcept override;

  // Another process has the port of the socket that the program has closed.
  bool is_lost() const noexcept override { return is_lost_.load(std::memory_order_relaxed); }
  bool add_window(const WindowMemory& memory, haul_atomic_window_name* name,
                  Error* error) noexcept override;
  void remove_window(unsigned index) noexcept override;
  void count(std::uint64_t* values) noexcept override;

  // Where it serves; stays the same.
  const SocketAddress& local() const noexcept { return socket_.local(); }

 private:
  HostResponder() noexcept = default;
  ~HostResponder() = default;
  bool start(const Options& options, Error* error) noexcept;
  int start_thread() noexcept;
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
