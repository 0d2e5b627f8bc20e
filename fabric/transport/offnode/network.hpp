// Messages to other nodes: packets that a libfabric provider (verbs;ofi_rxm, tcp;ofi_rxm), or TCP
// without one, carries under haul's own matching, and memory that such a provider reads.
//
// Opening such a provider takes 40 ms and more and 70 MB of memory, and it does not tell that a
// peer has died. So an endpoint merely listens on a TCP port until the first contact with another
// node. Two endpoints connect there (a link), agree on a provider and open it. The kernel reports
// on the link that a peer's process has gone, at once, and after half a minute that its node has.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "base/os/descriptor.hpp"
#include "fabric/transport/offnode/inbox.hpp"
#include "fabric/transport/offnode/offnode_access.hpp"
#include "fabric/transport/offnode/peer.hpp"
#include "fabric/transport/offnode/wire.hpp"

namespace haul::fabric {

class OffnodeNetwork final : public Network, OffnodeDirectory, OffnodeCarrier::User {
 public:
  // `listener` is taken. self: whole, with its places.
  OffnodeNetwork(const char* provider, const Address& self, int listener) noexcept;
  // Sends what has been committed (for a second at most) and says good-bye.
  ~OffnodeNetwork() override;

  void connect(const Address& address) noexcept override;
  bool next(NetworkEvent& event) noexcept override;
  void drop(const Address& address) noexcept override;
  void turn() noexcept override;
  DirectAccess& access() noexcept override { return access_; }
  // Packets of other nodes can come. Any thread.
  bool has_peers() const noexcept { return has_peers_.load(std::memory_order_relaxed); }
  // This is a child of fork: closes the links here, so that peers notice the parent's death, and
  // touches nothing that the parent uses. Every other call does nothing from now on.
  void forked() noexcept;

  // For OffnodeAccess: nullptr if it is not known; true if anything happened.
  OffnodePeer* find(const Address& address) noexcept {
    return forked_ ? nullptr : find(address.id);
  }
  bool is_forked() const noexcept { return forked_; }
  bool poll_once() noexcept;

 private:
  // ---- peers (network.cpp) ----
  struct Id {
    std::uint64_t words[2];
    bool operator==(const Id&) const = default;
  };
  struct HashId {
    std::size_t operator()(const Id& id) const noexcept { return id.words[0] ^ id.words[1]; }
  };
  OffnodePeer* find(const std::uint64_t id[2]) noexcept;
  OffnodePeer& peer_of(const Address& address) noexcept;
  void tell(const NetworkEvent& event) noexcept;
  void tell(NetworkEvent::What what, OffnodePeer& peer, int error) noexcept;
  OffnodePeer* sender(const std::uint64_t id[2]) noexcept override;

  // ---- packets (network.cpp) ----
  void departed(Departure& departure, int error) noexcept override;
  void arrived(OffnodeCarrier& carrier, const std::byte* data, std::size_t bytes,
               Landing& landing) noexcept override;
  void fail(OffnodePeer& peer, int error) noexcept;
  bool push_waiting() noexcept;
  void was_read(Reading& reading, int error) noexcept override;
  void poll(std::uint64_t now) noexcept;
  void flush() noexcept;

  // ---- links (contact.cpp) ----
  void turn_links() noexcept;
  bool is_shaking_hands() const noexcept { return !strangers_.empty() || shaking_ != 0; }
  void accept_strangers() noexcept;
  void hear_strangers() noexcept;
  bool welcome(std::unique_ptr<OffnodeLink>& link, const LinkMessage& offer) noexcept;
  void refuse(OffnodeLink& link, const LinkMessage& offer, int error) noexcept;
  void begin_attempts(OffnodePeer& peer) noexcept;
  void advance(OffnodePeer& peer) noexcept;
  bool make_offer(OffnodePeer& peer, const OffnodePeer::Attempt& attempt) noexcept;
  void take_answer(OffnodePeer& peer, const LinkMessage& answer) noexcept;
  void give_up(OffnodePeer& peer, int error) noexcept;
  void hear(OffnodePeer& peer) noexcept;
  void hear(OffnodePeer& peer, std::unique_ptr<OffnodeLink>& link) noexcept;
  void say_bye(OffnodePeer& peer, int reason) noexcept;
  OffnodeCarrier* carrier_of(const char* provider, const os::InetAddress& local) noexcept;
  const std::vector<std::string>& available() noexcept;
  LinkMessage message(LinkMessage::Kind kind, const OffnodePeer* to) const noexcept;
  void set_state(OffnodePeer& peer, OffnodePeer::State state) noexcept;

  // ---- ends (contact.cpp) ----
  void begin_leaving(OffnodePeer& peer, int error) noexcept;
  void settle(std::uint64_t now) noexcept;

  const std::string provider_;          // the knob's text
  std::vector<std::string> available_;  // what it allows here; found out at the first contact
  const Address self_;
  os::Descriptor listener_;
  bool forked_ = false;
  std::atomic<bool> has_peers_{false};
  OffnodeAccess access_{*this};
  OffnodeInbox inbox_;
  std::vector<std::unique_ptr<OffnodeCarrier>> carriers_;  // one, unless nodes differ
  std::deque<NetworkEvent> events_;
  std::unordered_map<Id, std::unique_ptr<OffnodePeer>, HashId> peers_;
  std::vector<OffnodePeer*> order_;  // peers with a link, or to be connected
  std::vector<OffnodePeer*> leaving_;
  std::vector<std::unique_ptr<OffnodeLink>> strangers_;  // accepted, no offer yet
  unsigned shaking_ = 0;                                 // peers connecting or offered
  std::size_t next_heard_ = 0;                           // in order_
  // Times in ticks().
  std::uint64_t next_link_turn_ = 0, next_poll_ = 0, looked_ = 0;
  std::uint32_t turns_ = 0, turns_skipped_ = 1, vain_polls_ = 0;
};

// `provider`: HAUL_FABRIC_OFFNODE. Fills in `offnode` and `offnode_bytes` of *self, whose other
// fields are set. nullptr: there is no such network; error->sentence is empty if none is needed
// (off, or auto on a node with no interface but loopback).
std::unique_ptr<OffnodeNetwork> open_offnode(const char* provider, Address* self,
                                             Error* error) noexcept;

}  // namespace haul::fabric
