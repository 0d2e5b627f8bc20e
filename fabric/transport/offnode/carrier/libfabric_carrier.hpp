// Packets as untagged messages of a libfabric provider, received into large buffers that many of
// them share (FI_MULTI_RECV). The provider is opened for one thread at a time (FI_THREAD_DOMAIN).
// Its calls may be cancellation points, so cancellation is disabled around each.
#pragma once

#include <rdma/fi_endpoint.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "fabric/transport/offnode/carrier/carrier.hpp"

namespace haul::fabric {

// What makes a provider read and serve reads.
inline constexpr std::uint64_t read_caps = FI_RMA | FI_READ | FI_REMOTE_READ;

class LibfabricCarrier final : public OffnodeCarrier {
 public:
  // `info` is one of getinfo()'s answers.
  static Expected<std::unique_ptr<OffnodeCarrier>> open(const fi_info& info) noexcept;
  ~LibfabricCarrier() override;

  int insert(const std::uint8_t* name, std::size_t bytes, fi_addr_t* address) noexcept override;
  int send(Departure& departure, fi_addr_t address) noexcept override;
  bool poll(User& user) noexcept override;
  void let_go(Landing& landing) noexcept override;
  bool reads() const noexcept override { return reads_; }
  int lend(void* at, std::size_t bytes, std::uint64_t* address,
           std::uint32_t* key) noexcept override;
  void take_back(std::uint32_t key) noexcept override;
  int read(Reading& reading, const iovec* to, std::size_t count, fi_addr_t from,
           std::uint64_t address, std::uint32_t key) noexcept override;
  void give_up(Reading& reading) noexcept override;
  void forked() noexcept override;

  // How often the provider was told of the program's memory.
  std::uint64_t registrations() const noexcept {
    return memory_lent_.registrations() + places_read_into_.registrations();
  }

 private:
  int set_up(const fi_info& info) noexcept;
  bool register_slab(Slab& slab) noexcept override;
  bool make_landings() noexcept;
  void post(Landing& landing) noexcept;
  bool poll_error(User& user) noexcept;

  // ---- libfabric_memory.cpp ----
  struct Loan {
    ProviderMemory::Use use;
    unsigned times = 0;
  };
  void close_registrations() noexcept;
  int acquire(ProviderMemory& memory, const iovec& what, std::size_t before, std::size_t behind,
              ProviderMemory::Use* use) noexcept;
  void end_one(const Loan& loan) noexcept;
  void ended(Reading& reading, int error, User& user) noexcept;

  bool registers_ = false;     // local memory too
  bool by_address_ = false;    // what is lent is named by addresses, else by offsets
  bool chooses_keys_ = false;  // the provider does
  bool reads_ = false;
  std::size_t most_pieces_ = 1;
  // Apart, so that peers cannot read what was only read into.
  ProviderMemory memory_lent_, places_read_into_;
  std::unordered_map<std::uint32_t, Loan> lent_;  // by key
  std::vector<Reading*> pinned_;                  // into memory that is registered
  std::uint64_t loans_ = 0, parts_read_ = 0;      // into such memory
  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_cq* queue_ = nullptr;
  fid_av* addresses_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  std::vector<Landing> landings_;
  std::vector<Landing*> unposted_;  // the provider had no room for them
};

}  // namespace haul::fabric
