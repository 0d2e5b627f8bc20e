// The soak's control: a responder without a memory. What it serves with is the library's; the
// results of earlier packets are taken from it before each.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "atomic/link/udp_socket.hpp"
#include "atomic/responder/tables.hpp"
#include "tests/atomic/soak_server.hpp"
#include "tools/failure.hpp"

namespace atomic_test {
namespace {

using haul::atomics::SocketAddress;
using haul::atomics::Tables;
using haul::atomics::UdpSocket;
using haul::atomics::WirePacket;

constexpr char host_address[] = "10.0.0.2";
constexpr unsigned sessions = 16;
constexpr std::uint64_t key = 1, page = 4096;

std::uint32_t seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

class ForgetfulServer final : public Server {
 public:
  ForgetfulServer(const haul::bench::Namespace& host, std::uint64_t bytes)
      : bytes_((bytes + page - 1) / page * page), memory_(new std::uint64_t[bytes_ / 8]{}) {
    const haul::bench::Inside inside(host);
    SocketAddress at;
    parse_host(host_address, 0, &at);
    if (socket_.open(at) != 0 || !tables_.open(sessions)) {
      throw haul::tools::CommandFailure("opening the forgetful server failed");
    }
    constexpr unsigned wake_ms = 100;
    socket_.receive_timeout_ms(wake_ms);
    tables_.add_window(0, {key, address(), bytes_}, reinterpret_cast<char*>(memory_.get()));
    thread_ = std::thread([this] { run(); });
  }
  ~ForgetfulServer() override {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

  std::string description() const override { return "block, without a memory of results"; }
  haul_atomic_window_name name() const override {
    haul_atomic_window_name name{};
    std::strcpy(name.host, host_address);
    name.port = socket_.local().port();
    name.address = address();
    name.bytes = bytes_;
    name.key = key;
    return name;
  }
  std::uint64_t* words() const override { return memory_.get(); }
  std::map<std::string, std::uint64_t> counters() const override {
    return {{"served operations", tables_.count_of(SERVED_OPERATIONS)},
            {"replayed", tables_.count_of(REPLAYED)}};
  }

 private:
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(memory_.get()); }

  void run() {
    while (!stop_.load(std::memory_order_relaxed)) {
      WirePacket packet;
      SocketAddress from;
      const ssize_t bytes = socket_.receive(&packet, sizeof packet, &from, true);
      if (bytes < static_cast<ssize_t>(sizeof packet.header)) continue;
      for (unsigned slot = 0; slot < sessions; ++slot) {
        tables_.find_results(slot, packet.header.sequence)->state = PHASE_EMPTY;
      }
      if (tables_.serve(&packet, static_cast<std::size_t>(bytes), from.number(), seconds())) {
        socket_.send(&packet, packet_bytes(packet), from);
      }
    }
  }

  const std::uint64_t bytes_;
  const std::unique_ptr<std::uint64_t[]> memory_;
  UdpSocket socket_;
  Tables tables_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Server> serve_forgetfully(const haul::bench::Namespace& host, std::uint64_t bytes) {
  return std::make_unique<ForgetfulServer>(host, bytes);
}

}  // namespace atomic_test
