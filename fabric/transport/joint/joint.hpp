// One network of two: peers of this node over shared memory, others over a carrier. Each call goes
// to the network that has the peer, by the host that its address names; events come from both, and
// the protocol sees one list. Two things are added here. The carrier has no
// doorbell, so the control thread wakes a sleeping thread every millisecond (every 20 without peers
// on other nodes). And the lowest bit of a copy's ticket says which of the two it belongs to.
#pragma once

#include <memory>

#include "fabric/transport/control/control.hpp"
#include "fabric/transport/local/local.hpp"
#include "fabric/transport/offnode/network.hpp"

namespace haul::fabric {

class JointNetwork final : public EndpointNetwork,
                           private control::Subscriber,
                           private DirectAccess {
 public:
  // `address` is that of both.
  static Expected<std::unique_ptr<JointNetwork>> open(
      const Address& address, std::unique_ptr<OffnodeNetwork> offnode) noexcept;
  ~JointNetwork() override;

  const Address& address() const noexcept override { return local_->address(); }
  int doorbell() noexcept override { return local_->doorbell(); }
  void arm() noexcept override;
  void disarm() noexcept override;
  void publish(const Statistics* statistics) noexcept override {
    local_->publish(statistics);
    observed = local_->access().observed;
  }
  bool lost() const noexcept override { return local_->lost(); }
  void connect(const Address& address) noexcept override;
  bool next(NetworkEvent& event) noexcept override;
  void drop(const Address& address) noexcept override;
  void turn() noexcept override;
  DirectAccess& access() noexcept override { return *this; }

 private:
  explicit JointNetwork(std::unique_ptr<OffnodeNetwork> offnode) noexcept
      : offnode_(std::move(offnode)) {}

  // ---- control::Subscriber: wakes an armed sleeper by time ----
  void ready(std::uint64_t) noexcept override {}
  int tick() noexcept override;
  void forked() noexcept override { offnode_->forked(); }

  // ---- DirectAccess: passed on to the one of the peer's network ----
  MessageWays ways(const Peer& peer, const MemoryPlace& place, std::size_t bytes,
                   bool huge_pages) const noexcept override;
  MemoryPlace describe(const Peer& peer, const iovec* local, std::size_t count,
                       bool* huge_pages) noexcept override;
  bool can_be_mapped(const Peer& peer, const iovec& local) const noexcept override;
  MessageWays mapped_ways(const Peer& peer, std::size_t bytes) const noexcept override;
  void withdraw(const Peer& peer, const MemoryPlace& place) noexcept override;
  std::int64_t start(Peer& peer, Direction direction, const iovec* local, std::size_t count,
                     const MemoryPlace& place, std::uint64_t offset, std::size_t bytes,
                     bool streamed) noexcept override;
  std::int64_t offload(Peer& peer, const iovec* local, std::size_t count, const MemoryPlace& place,
                       std::size_t bytes) noexcept override;
  std::uint64_t left_ns(std::int64_t ticket) noexcept override;
  int test(std::int64_t ticket) noexcept override;
  std::size_t grain(const Peer& peer, std::size_t whole) const noexcept override;
  std::atomic<std::uint64_t>* claim(Peer& peer, bool sender, unsigned index) noexcept override;
  void note_large(Path path, std::size_t bytes, std::uint64_t taken_ns) noexcept override {
    local_->access().note_large(path, bytes, taken_ns);
  }
  void note_unmapped(const iovec* pieces, std::size_t count, std::size_t bytes,
                     bool sent) noexcept override {
    local_->access().note_unmapped(pieces, count, bytes, sent);
  }

  bool is_local(const Address& address) const noexcept {
    return address.host == local_->address().host;
  }
  DirectAccess& access_of(const Peer& peer) const noexcept;
  DirectAccess& access_of(std::int64_t ticket) const noexcept;
  std::int64_t joint_ticket(const Peer& peer, std::int64_t ticket) const noexcept;
  Network& network_of(const Address& address) noexcept;
  // The protocol asks this network alone whether there is news.
  void pass_news() noexcept;

  std::unique_ptr<OffnodeNetwork> offnode_;
  std::unique_ptr<LocalNetwork> local_;
  // Under the control thread's lock:
  bool armed_ = false;
  std::uint64_t rung_ns_ = 0;  // or armed
};

}  // namespace haul::fabric
