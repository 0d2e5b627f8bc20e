// The network of one endpoint within its node: segments to and from its peers, and which of their
// memory can be reached. Sockets and deaths are the business of peer_sockets.hpp.
//
// Threads: as Network says; doorbell(), arm() and disarm() also beside it.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "fabric/transport/local/huge_pages.hpp"
#include "fabric/transport/local/peer_sockets.hpp"
#include "fabric/transport/network.hpp"

namespace haul::fabric {

class LocalAccess;

// A peer as the endpoint's thread knows it.
struct LocalPeer {
  // What RingOutbox's doorbell needs.
  struct Bell {
    RingSegment* segment = nullptr;
    os::Descriptor socket;
  };
  std::unique_ptr<SharedSegment> out, in;
  PairCells cells;
  std::optional<RingOutbox> outbox;
  std::optional<RingInbox> inbox;
  Bell bell;
  std::uint64_t out_connection = 0, in_connection = 0;
  std::shared_ptr<PeerMemory> reach;
  bool lost = false;        // reported as ended or died
  bool arena_told = false;  // it was sent this process's arena
  unsigned copies = 0;      // begun by LocalAccess, and not over
};

class LocalNetwork final : public EndpointNetwork {
 public:
  // Listens under `address`. `news` (nullptr: its own) is set when there is any.
  static Expected<std::unique_ptr<LocalNetwork>> open(
      const Address& address, std::atomic<std::uint32_t>* news,
      const HaulPrivateMessageLimits& limits = message_limits()) noexcept;
  ~LocalNetwork() override;

  // Under the control thread's lock: rings the doorbell if it is armed.
  void ring() noexcept { sockets_.ring(); }
  // connect() has failed: `refused` follows.
  void refuse(const Address& address, int error) noexcept;
  // nullptr: no such peer (any more).
  LocalPeer* find(const Address& address) noexcept;
  // How many processes' endpoints are connected to this one.
  std::size_t peer_count() const noexcept { return peers_.size(); }
  // Sends the peer this process's arena, unless that has been done.
  void share_arena(const Address& address, LocalPeer& peer) noexcept;
  HugePages& huge_pages() noexcept { return huge_pages_; }
  const HaulPrivateMessageLimits& limits() const noexcept { return limits_; }

  const Address& address() const noexcept override { return address_; }
  int doorbell() noexcept override;
  void arm() noexcept override;
  void disarm() noexcept override;
  void publish(const Statistics* statistics) noexcept override;
  bool lost() const noexcept override;
  void connect(const Address& address) noexcept override;
  bool next(NetworkEvent& event) noexcept override;
  void drop(const Address& address) noexcept override;
  void turn() noexcept override {}
  DirectAccess& access() noexcept override;

 private:
  struct Hash {
    std::size_t operator()(const Address& address) const noexcept { return address.hash(); }
  };
  struct Sockets final : PeerSockets {
    Sockets(LocalNetwork& network, std::atomic<std::uint32_t>& news) noexcept
        : PeerSockets(news), network_(network) {}
    int tick() noexcept override;
    void forked() noexcept override;
    LocalNetwork& network_;
  };

  LocalNetwork(std::atomic<std::uint32_t>* news, const HaulPrivateMessageLimits& limits) noexcept;
  bool take(Arrival& arrival, NetworkEvent& event) noexcept;
  bool opened(Arrival& arrival, NetworkEvent& event) noexcept;
  bool over(const Arrival& arrival) noexcept;
  // Tells the ring to the peer where it finds how far apart both are.
  void follow_distance(LocalPeer& peer) noexcept;
  int make_doorbell() noexcept;
  void report_to_collector(bool last) noexcept;
  int tell_from_time_to_time() noexcept;

  const HaulPrivateMessageLimits limits_;
  Address address_;
  Sockets sockets_;
  // Changed under the control thread's lock; read by the endpoint's thread without.
  using Peers = std::unordered_map<Address, LocalPeer, Hash>;
  Peers peers_;
  // Dropped peers with a copy that does not end. They are never freed.
  std::vector<Peers::node_type*> lingering_;
  std::unique_ptr<LocalAccess> access_;
  HugePages huge_pages_;
  // Under the lock:
  os::Descriptor doorbell_;
  bool armed_ = false;
  os::Descriptor collector_;
  std::uint64_t told_ns_ = 0;  // when it was told last
  std::unique_ptr<Observation> observation_;
  int opener_ = 0;  // the process
};

}  // namespace haul::fabric
