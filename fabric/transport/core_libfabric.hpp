// Packets as untagged messages of a libfabric provider, received into large buffers that many of
// them share (FI_MULTI_RECV). The provider is opened for one thread at a time (FI_THREAD_DOMAIN).
#pragma once

#include <rdma/fi_endpoint.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/transport/core_carrier.hpp"

namespace haul::fabric {

class LibfabricCarrier final : public CoreCarrier {
 public:
  // What can be seen of the provider: an fi_info of getinfo().
  static Expected<std::unique_ptr<CoreCarrier>> open(const fi_info& info) noexcept;
  ~LibfabricCarrier() override;

  int insert(const std::uint8_t* name, std::size_t bytes, fi_addr_t* address) noexcept override;
  int send(Departure& departure, fi_addr_t address) noexcept override;
  bool poll(User& user) noexcept override;
  void let_go(Landing& landing) noexcept override;

 private:
  int set_up(const fi_info& info) noexcept;
  bool register_slab(Slab& slab) noexcept override;
  bool make_landings() noexcept;
  void post(Landing& landing) noexcept;
  bool poll_error(User& user) noexcept;

  bool registers_ = false;
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
