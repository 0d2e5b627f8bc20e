// Moves bytes between this process and a peer of its node without packets, as haul requests:
// through the peer's arena where that is mapped here, else by the kernel.
#pragma once

#include <haul/haul.h>

#include <vector>

#include "fabric/protocol/transport_contract.hpp"
#include "fabric/transport/observation.hpp"

namespace haul::fabric {

class LocalNetwork;
struct LocalPeer;

class LocalAccess final : public DirectAccess {
 public:
  explicit LocalAccess(LocalNetwork& network) noexcept : network_(network) {}

  MessageWays ways(const Peer& peer, const MemoryPlace& place, std::size_t bytes,
                   bool huge_pages) const noexcept override;
  MemoryPlace describe(const Peer& peer, const iovec* local, std::size_t count,
                       bool* huge_pages) noexcept override;
  bool can_be_mapped(const Peer& peer, const iovec& local) const noexcept override;
  MessageWays mapped_ways(const Peer& peer, std::size_t bytes) const noexcept override;
  std::int64_t start(Peer& peer, Direction direction, const iovec* local, std::size_t count,
                     const MemoryPlace& place, std::uint64_t offset, std::size_t bytes,
                     bool streamed) noexcept override;
  std::int64_t offload(Peer& peer, const iovec* local, std::size_t count, const MemoryPlace& place,
                       std::size_t bytes) noexcept override;
  std::uint64_t left_ns(std::int64_t ticket) noexcept override;
  int test(std::int64_t ticket) noexcept override;
  std::size_t grain(const Peer& peer, std::size_t whole) const noexcept override;
  std::atomic<std::uint64_t>* claim(Peer& peer, bool sender, unsigned index) noexcept override;
  void note_large(Path path, std::size_t bytes, std::uint64_t taken_ns) noexcept override;
  void note_unmapped(const iovec* pieces, std::size_t count, std::size_t bytes,
                     bool sent) noexcept override;

  // What is noted goes there; nullptr: nothing is.
  void observe(Observation* observation) noexcept {
    observation_ = observation;
    observed = observation != nullptr;
  }

  // Waits for the copies under way with a peer that is about to be forgotten; test() tells how they
  // ended. False after two seconds: some memory does not arrive, and the peer must stay.
  bool finish(LocalPeer& peer) noexcept;

 private:
  // A request that is under way; its place in the list is its ticket.
  struct Copy {
    haul_ticket ticket{};
    LocalPeer* peer = nullptr;
    bool taken = false;
    bool over = false;
    int result = 0;
  };
  LocalPeer* find(const Peer& peer) const noexcept;
  // This endpoint itself: its memory needs no path.
  bool is_own(const Peer& peer) const noexcept;
  bool remote_extent(LocalPeer& peer, bool own, const MemoryPlace& place, std::uint64_t offset,
                     std::size_t bytes, haul_extent* extent) noexcept;
  std::int64_t keep(haul_ticket ticket, LocalPeer& peer) noexcept;
  int ended(const LocalPeer& peer, int result) noexcept;
  bool core_to_spare() const noexcept;

  LocalNetwork& network_;
  std::vector<Copy> copies_;
  Observation* observation_ = nullptr;
};

}  // namespace haul::fabric
