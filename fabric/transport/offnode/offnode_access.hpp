// Reads what peers of other nodes have lent, by a carrier that can (RDMA): the receiver's side of a
// rendezvous without packets.
#pragma once

#include <memory>
#include <vector>

#include "fabric/protocol/pieces.hpp"
#include "fabric/protocol/transport_contract.hpp"
#include "fabric/transport/offnode/carrier/carrier.hpp"

namespace haul::fabric {

class OffnodeNetwork;
struct OffnodePeer;

class OffnodeAccess final : public DirectAccess {
 public:
  explicit OffnodeAccess(OffnodeNetwork& network) noexcept : network_(network) {}

  MessageWays ways(const Peer& peer, const MemoryPlace& place, std::size_t bytes,
                   bool huge_pages) const noexcept override;
  MemoryPlace describe(const Peer& peer, const iovec* local, std::size_t count,
                       bool* huge_pages) noexcept override;
  void withdraw(const Peer& peer, const MemoryPlace& place) noexcept override;
  std::int64_t start(Peer& peer, Direction direction, const iovec* local, std::size_t count,
                     const MemoryPlace& place, std::uint64_t offset, std::size_t bytes,
                     bool streamed) noexcept override;
  int test(std::int64_t ticket) noexcept override;
  std::size_t grain(const Peer&, std::size_t whole) const noexcept override { return whole; }
  std::atomic<std::uint64_t>* claim(Peer&, bool, unsigned) noexcept override { return nullptr; }

  // The carrier's news.
  static void was_read(Reading& reading, int error) noexcept;

 private:
  // Parts of a transfer are read two at a time: one comes while the next is asked for, and packets
  // wait no longer than these take.
  static constexpr std::size_t parts_at_once = 2;
  struct Transfer {
    bool taken = false;
    OffnodePeer* peer = nullptr;
    OffnodeCarrier* carrier = nullptr;
    Pieces to;
    std::uint64_t address = 0;
    std::uint32_t key = 0;
    std::size_t asked = 0;       // bytes
    unsigned under_way = 0;      // parts
    int error = 0;               // FI_E*
    std::uint64_t alone_ns = 0;  // since when its peer is known to have gone
    Reading parts[parts_at_once];
    Reading* refused = nullptr;  // the part that the carrier would not take yet
  };
  OffnodePeer* find(const Peer& peer) const noexcept;
  static void ask(Transfer& transfer) noexcept;
  bool is_over(Transfer& transfer) noexcept;
  static void give_up_refused(Transfer& transfer) noexcept;

  OffnodeNetwork& network_;
  std::vector<std::unique_ptr<Transfer>> transfers_;  // by ticket - 1; their addresses stay
};

}  // namespace haul::fabric
