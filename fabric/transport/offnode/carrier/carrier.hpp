// What carries packets to other nodes: an endpoint of a libfabric provider (libfabric_carrier), or
// TCP connections of our own (socket_carrier).
//
// Threads: not safe.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/net/inet.hpp"
#include "fabric/transport/offnode/carrier/provider_memory.hpp"

namespace haul::fabric {

struct OffnodePeer;

// What libfabric gives back with a completion: its own words first, as FI_CONTEXT2 wants it.
struct CarrierOperation {
  fi_context2 words;
  enum class Kind : std::uint8_t { departure, landing, reading } kind;
};

// A packet to be sent, or on its way.
struct Departure : CarrierOperation {
  static constexpr std::size_t headroom = 64;  // the carrier's own, before `data`
  std::byte* data = nullptr;
  void* descriptor = nullptr;
  std::uint32_t capacity = 0, bytes = 0;
  OffnodePeer* peer = nullptr;
  bool bulk = false, control = false;
  Departure* next = nullptr;  // of a list: free, waiting for the carrier, or gone
};

// Memory into which packets come; it is used again when the last of them has been let go.
struct Landing : CarrierOperation {
  std::byte* data = nullptr;
  void* descriptor = nullptr;
  std::uint32_t packets = 0;  // not yet let go
  bool full = false;          // nothing more is put into it
};

// Bytes of a peer's memory that are on their way here.
struct Reading : CarrierOperation {
  ProviderMemory::Use into;  // of where they go, if the provider must know that
  // Of the same message, how many bytes were asked for before, and will be, which go to memory that
  // is one piece with this.
  std::size_t before = 0, behind = 0;
  bool busy = false;
  void* user = nullptr;
};

class OffnodeCarrier {
 public:
  static constexpr std::size_t packet_bytes = 16384;  // the most that tcp and verbs send at once
  static constexpr std::size_t name_capacity = 128;
  static constexpr const char* socket_name = "socket";  // the carrier without a provider

  // What is told by poll().
  class User {
   public:
    virtual void departed(Departure& departure, int error) noexcept = 0;  // FI_E*, positive
    virtual void arrived(OffnodeCarrier& carrier, const std::byte* data, std::size_t bytes,
                         Landing& landing) noexcept = 0;
    virtual void was_read(Reading& reading, int error) noexcept = 0;

   protected:
    ~User() = default;
  };

  // The carriers that HAUL_FABRIC_OFFNODE allows and that are there, the best first.
  static std::vector<std::string> available(const char* knob) noexcept;
  // `local`: the address by which other nodes are reached, which selects the interface.
  static Expected<std::unique_ptr<OffnodeCarrier>> open(const char* provider,
                                                        const os::InetAddress& local) noexcept;
  virtual ~OffnodeCarrier();
  OffnodeCarrier(const OffnodeCarrier&) = delete;
  OffnodeCarrier& operator=(const OffnodeCarrier&) = delete;

  const std::string& provider() const noexcept { return provider_; }
  const std::uint8_t* name() const noexcept { return name_; }
  std::size_t name_bytes() const noexcept { return name_bytes_; }

  // The address of the endpoint with this name; `bytes` of it are the peer's, up to name_capacity
  // zeros. 0 or -FI_E*.
  virtual int insert(const std::uint8_t* name, std::size_t bytes, fi_addr_t* address) noexcept = 0;
  // 0: departed() follows. -FI_EAGAIN: not now. Else -FI_E*.
  virtual int send(Departure& departure, fi_addr_t address) noexcept = 0;
  // True if anything happened.
  virtual bool poll(User& user) noexcept = 0;
  // A packet of arrived() is no longer needed.
  virtual void let_go(Landing& landing) noexcept = 0;

  // ---- the program's memory, where the provider reads that of peers (RDMA) ----
  virtual bool reads() const noexcept { return false; }
  // Lets peers read [at, at + bytes), by *address and *key, until it is taken back: not before, and
  // if it stays registered also afterwards. Several loans may share a key. 0 or -FI_E*.
  virtual int lend(void* at, std::size_t bytes, std::uint64_t* address,
                   std::uint32_t* key) noexcept;
  virtual void take_back(std::uint32_t) noexcept {}
  // Reads what a peer has lent. 0: was_read() follows. -FI_EAGAIN: not now, and either this is
  // asked again with the same reading or give_up() is called. Else -FI_E*.
  virtual int read(Reading& reading, const iovec* to, std::size_t count, fi_addr_t from,
                   std::uint64_t address, std::uint32_t key) noexcept;
  // This reading, which is not under way, is not asked for again.
  virtual void give_up(Reading&) noexcept {}

  // This is a child of fork: nothing else is called from now on, and all that is open is the
  // parent's.
  virtual void forked() noexcept {}

  // A buffer for a packet; nullptr without memory.
  Departure* take(std::size_t bytes) noexcept;
  void give(Departure& departure) noexcept;

 protected:
  // Mapped memory, and what the provider calls it.
  struct Slab {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    fid_mr* registration = nullptr;
    void* descriptor = nullptr;
    std::unique_ptr<Departure[]> departures;
  };
  OffnodeCarrier() noexcept = default;
  // False, and nothing is mapped, where there is no memory.
  bool map(std::size_t bytes, Slab* slab) noexcept;
  // Makes a slab known to the provider; false if it cannot.
  virtual bool register_slab(Slab&) noexcept { return true; }

  std::string provider_;
  std::uint8_t name_[name_capacity] = {};
  std::size_t name_bytes_ = 0;
  std::vector<Slab> slabs_;

 private:
  bool make_departures(std::size_t capacity, std::size_t count, Departure** free_list) noexcept;

  Departure* free_small_ = nullptr;
  Departure* free_large_ = nullptr;
};

}  // namespace haul::fabric
