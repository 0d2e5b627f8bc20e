// Packets of all peers of other nodes, in the order in which they came.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>

#include "fabric/protocol/transport_contract.hpp"
#include "fabric/transport/offnode/carrier/carrier.hpp"

namespace haul::fabric {

// Finds peers by their ids.
class OffnodeDirectory {
 public:
  // nullptr: packets of this id are not taken.
  virtual OffnodePeer* sender(const std::uint64_t id[2]) noexcept = 0;

 protected:
  ~OffnodeDirectory() = default;
};

class OffnodeInbox final : public Inbox {
 public:
  explicit OffnodeInbox(OffnodeDirectory& directory) noexcept;

  Got receive(ReceivedPacket& packet) noexcept override;
  void release() noexcept override;

  // A packet that the carrier has brought; it is let go there when it has been released.
  void add(OffnodeCarrier& carrier, const std::byte* data, std::size_t bytes,
           Landing& landing) noexcept;
  void clear() noexcept;

 private:
  struct Arrival {
    OffnodeCarrier* carrier;
    const std::byte* data;
    std::size_t bytes;
    Landing* landing;
    OffnodePeer* peer;
  };
  void let_go_first() noexcept;

  OffnodeDirectory& directory_;
  std::atomic<std::uint64_t> filled_{0};
  std::deque<Arrival> arrivals_;
};

}  // namespace haul::fabric
