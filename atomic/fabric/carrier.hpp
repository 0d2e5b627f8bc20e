// A node's side of a fabric: windows that are registered, connections, and, where the provider's
// software serves what others ask for, a thread that makes its progress.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "atomic/fabric/fabric_endpoint.hpp"
#include "atomic/fabric/runs.hpp"
#include "atomic/responder/fabric.hpp"
#include "base/os/descriptor.hpp"

namespace haul::atomics {

class FabricCarrier;

class FabricConnection final : public RemoteConnection {
 public:
  FabricConnection(FabricCarrier& carrier, const Session::Names& names, std::uint64_t timeout_ns,
                   const FabricEndpoint::Target& target, std::uint64_t window_bytes) noexcept;
  void send(const WirePacket& packet) noexcept override;

 private:
  friend class FabricCarrier;
  FabricCarrier& fabric_;
  const FabricEndpoint::Target target_;
  const std::uint64_t window_bytes_;
  bool is_asked_ = false;  // the peer is being asked whether it is still there
};

class FabricCarrier final : public Carrier, public Responder {
 public:
  FabricCarrier() noexcept = default;
  bool open(const FabricOptions& options, Error* error) noexcept;

  const char* description() const noexcept { return description_; }
  const haul_atomic_window_name& name() const noexcept { return name_; }

  // The responder.
  bool is_atomic_with_cpu() const noexcept override {
    return haul::atomics::is_atomic_with_cpu(name_.host);
  }
  bool add_window(const WindowMemory& memory, haul_atomic_window_name* name,
                  Error* error) noexcept override;
  void remove_window(unsigned index) noexcept override;
  void close() noexcept override;

  // The carrier; its object is the responder's.
  void end() noexcept override { disconnect_all(); }

 private:
  friend class FabricConnection;
  ~FabricCarrier();

  Expected<RemoteConnection*> make(const haul_atomic_window_name& name,
                                   const Session::Names& names) noexcept override;
  void parting(RemoteConnection& connection) noexcept override;
  void is_open(RemoteConnection&) noexcept override {}
  void pump(std::uint64_t now_ns) noexcept override;
  void pump_one(RemoteConnection&, std::uint64_t now_ns) noexcept override { pump(now_ns); }
  void sleep(RemoteConnection& connection) noexcept override;
  Error refusal(Code code, const haul_atomic_window_name& name) const noexcept override;

  // The lock is held in these.
  static FabricConnection& own(RemoteConnection& connection) noexcept {
    return static_cast<FabricConnection&>(connection);
  }
  void start(FabricConnection& connection, const WirePacket& packet) noexcept;
  void begin_run(FabricConnection& connection, const WirePacket& packet) noexcept;
  void go_on(Run* run) noexcept;
  void post(Run* run) noexcept;
  void answered(Run* run) noexcept;
  void failed(Run* run, int failure) noexcept;
  void answer(Run* run, wire_status status) noexcept;
  bool is_awaited(const Run& run) const noexcept;
  void ask_again(std::uint64_t now_ns) noexcept;
  void is_there(Run* run, wire_status status) noexcept;
  void look() noexcept;
  void post_again() noexcept;

  bool start_thread() noexcept;
  void attend() noexcept;

  FabricEndpoint endpoint_;
  haul_atomic_window_name name_{};
  char description_[200] = {};
  fid_mr* windows_[max_windows] = {};
  Runs runs_;
  Run* unposted_ = nullptr;  // the provider had no room for their questions
  pthread_cond_t heard_ = PTHREAD_COND_INITIALIZER;
  unsigned sleepers_ = 0;
  std::uint64_t asked_ns_ = 0;
  pthread_t thread_{};
  bool running_ = false;
  os::Descriptor end_;
  std::atomic<bool> stop_{false};
};

}  // namespace haul::atomics
