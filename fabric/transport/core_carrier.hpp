// An endpoint of a libfabric provider that carries packets as untagged messages: buffers to send
// from, and large ones that many arriving packets share (FI_MULTI_RECV).
//
// Threads: not safe; the provider is opened for one thread at a time (FI_THREAD_DOMAIN).
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/inet.hpp"

namespace haul::fabric {

struct CorePeer;

// What the provider gives back with a completion: its own words first, as FI_CONTEXT2 wants it.
struct CoreOperation {
  fi_context2 words;
  enum class Kind : std::uint8_t { departure, landing } kind;
};

// A packet to be sent, or on its way.
struct Departure : CoreOperation {
  std::byte* data = nullptr;
  void* descriptor = nullptr;
  std::uint32_t capacity = 0, bytes = 0;
  CorePeer* peer = nullptr;  // nullptr: it has been dropped meanwhile
  bool bulk = false, control = false;
  Departure* next = nullptr;  // of a free list, or of the peer's waiting ones
};

// Memory into which packets come; it is used anew when the last of them has been let go.
struct Landing : CoreOperation {
  std::byte* data = nullptr;
  void* descriptor = nullptr;
  std::uint32_t packets = 0;  // not yet let go
  bool full = false;          // the provider puts nothing more into it
};

class CoreCarrier {
 public:
  static constexpr std::size_t packet_bytes = 16384;  // the most that tcp and verbs send at once
  static constexpr std::size_t name_capacity = 128;

  // What is told by poll().
  class User {
   public:
    virtual void departed(Departure& departure, int error) noexcept = 0;  // FI_E*, positive
    virtual void arrived(const std::byte* data, std::size_t bytes, Landing& landing) noexcept = 0;

   protected:
    ~User() = default;
  };

  // The providers that HAUL_FABRIC_CORE allows and that are there, the best first.
  static std::vector<std::string> available(const char* knob) noexcept;
  // `local`: the address by which other nodes are reached, which selects the interface.
  static Expected<std::unique_ptr<CoreCarrier>> open(const char* provider,
                                                     const os::InetAddress& local) noexcept;
  ~CoreCarrier();
  CoreCarrier(const CoreCarrier&) = delete;
  CoreCarrier& operator=(const CoreCarrier&) = delete;

  const std::string& provider() const noexcept { return provider_; }
  const std::uint8_t* name() const noexcept { return name_; }
  std::size_t name_bytes() const noexcept { return name_bytes_; }

  // 0 or -FI_E*.
  int insert(const std::uint8_t* name, fi_addr_t* address) noexcept;

  // nullptr without memory.
  Departure* take(std::size_t bytes) noexcept;
  void give(Departure& departure) noexcept;
  // 0: departed() follows. -FI_EAGAIN: not now. Else -FI_E*.
  int send(Departure& departure, fi_addr_t address) noexcept;
  // True if anything happened.
  bool poll(User& user) noexcept;
  // A packet of arrived() is no longer needed.
  void let_go(Landing& landing) noexcept;

 private:
  struct Slab {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    fid_mr* registration = nullptr;
    std::unique_ptr<Departure[]> departures;
  };
  CoreCarrier() noexcept = default;
  int set_up(const fi_info& info) noexcept;
  bool make_landings() noexcept;
  bool make_slab(std::size_t capacity, std::size_t count, Departure** free_list) noexcept;
  void* map(std::size_t bytes, Slab* slab) noexcept;
  void post(Landing& landing) noexcept;
  bool poll_error(User& user) noexcept;

  std::string provider_;
  std::uint8_t name_[name_capacity] = {};
  std::size_t name_bytes_ = 0;
  bool registers_ = false;
  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_cq* queue_ = nullptr;
  fid_av* addresses_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  std::vector<Slab> slabs_;
  std::vector<Landing> landings_;
  std::vector<Landing*> unposted_;  // the provider had no room for them
  Departure* free_small_ = nullptr;
  Departure* free_large_ = nullptr;
};

}  // namespace haul::fabric
