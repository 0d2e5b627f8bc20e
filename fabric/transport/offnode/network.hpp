// The core network of one endpoint: its peers on other nodes, the links to them, and who carries
// packets once there is somebody to talk to. See core.hpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/descriptor.hpp"
#include "fabric/transport/offnode/direct_access.hpp"
#include "fabric/transport/offnode/inbox.hpp"
#include "fabric/transport/offnode/offnode.hpp"
#include "fabric/transport/offnode/peer.hpp"
#include "fabric/transport/offnode/wire.hpp"

namespace haul::fabric {

class TheCoreNetwork final : public CoreNetwork, CoreDirectory, CoreCarrier::User {
 public:
  // `listener` is taken. self: whole, with its places.
  TheCoreNetwork(const char* provider, const Address& self, int listener) noexcept;
  ~TheCoreNetwork() override;

  void connect(const Address& address) noexcept override;
  bool next(NetworkEvent& event) noexcept override;
  void drop(const Address& address) noexcept override;
  void turn() noexcept override;
  Mover& mover() noexcept override { return mover_; }
  bool has_peers() const noexcept override { return has_peers_.load(std::memory_order_relaxed); }
  void forked() noexcept override;

  // For the mover: nullptr if it is not known; true if anything happened.
  CorePeer* find(const Address& address) noexcept { return forked_ ? nullptr : find(address.id); }
  bool is_forked() const noexcept { return forked_; }
  bool poll_once() noexcept;

 private:
  // ---- peers (core_network.cpp) ----
  struct Id {
    std::uint64_t words[2];
    bool operator==(const Id&) const = default;
  };
  struct HashId {
    std::size_t operator()(const Id& id) const noexcept { return id.words[0] ^ id.words[1]; }
  };
  CorePeer* find(const std::uint64_t id[2]) noexcept;
  CorePeer& peer_of(const Address& address) noexcept;
  void tell(const NetworkEvent& event) noexcept;
  void tell(NetworkEvent::What what, CorePeer& peer, int error) noexcept;
  CorePeer* sender(const std::uint64_t id[2]) noexcept override;

  // ---- packets (core_network.cpp) ----
  void departed(Departure& departure, int error) noexcept override;
  void arrived(CoreCarrier& carrier, const std::byte* data, std::size_t bytes,
               Landing& landing) noexcept override;
  void fail(CorePeer& peer, int error) noexcept;
  bool push_waiting() noexcept;
  void was_read(Reading& reading, int error) noexcept override;
  void poll(std::uint64_t now) noexcept;
  void flush() noexcept;

  // ---- links (core_contact.cpp) ----
  void turn_links() noexcept;
  bool is_shaking_hands() const noexcept { return !strangers_.empty() || shaking_ != 0; }
  void accept_strangers() noexcept;
  void hear_strangers() noexcept;
  bool welcome(std::unique_ptr<CoreLink>& link, const LinkMessage& offer) noexcept;
  void refuse(CoreLink& link, const LinkMessage& offer, int error) noexcept;
  void begin_attempts(CorePeer& peer) noexcept;
  void advance(CorePeer& peer) noexcept;
  bool make_offer(CorePeer& peer, const CorePeer::Attempt& attempt) noexcept;
  void take_answer(CorePeer& peer, const LinkMessage& answer) noexcept;
  void give_up(CorePeer& peer, int error) noexcept;
  void hear(CorePeer& peer) noexcept;
  void hear(CorePeer& peer, std::unique_ptr<CoreLink>& link) noexcept;
  void say_bye(CorePeer& peer, int reason) noexcept;
  CoreCarrier* carrier_of(const char* provider, const os::InetAddress& local) noexcept;
  const std::vector<std::string>& available() noexcept;
  LinkMessage message(LinkMessage::Kind kind, const CorePeer* to) const noexcept;
  void set_state(CorePeer& peer, CorePeer::State state) noexcept;

  // ---- ends (core_contact.cpp) ----
  void begin_leaving(CorePeer& peer, int error) noexcept;
  void settle(std::uint64_t now) noexcept;

  const std::string provider_;          // the knob's text
  std::vector<std::string> available_;  // what it allows here; found out at the first contact
  const Address self_;
  os::Descriptor listener_;
  bool forked_ = false;
  std::atomic<bool> has_peers_{false};
  CoreMover mover_{*this};
  CoreInbox inbox_;
  std::vector<std::unique_ptr<CoreCarrier>> carriers_;  // one, unless nodes differ
  std::deque<NetworkEvent> events_;
  std::unordered_map<Id, std::unique_ptr<CorePeer>, HashId> peers_;
  std::vector<CorePeer*> order_;    // peers with a link, or to be connected
  std::vector<CorePeer*> waiting_;  // with packets that the provider did not take
  std::vector<CorePeer*> leaving_;
  std::vector<std::unique_ptr<CoreLink>> strangers_;  // accepted, no offer yet
  unsigned shaking_ = 0;                              // peers connecting or offered
  std::size_t next_heard_ = 0;                        // in order_
  // Times in ticks().
  std::uint64_t next_link_turn_ = 0, next_poll_ = 0, looked_ = 0;
  std::uint32_t turns_ = 0, turns_skipped_ = 1, vain_polls_ = 0;
};

}  // namespace haul::fabric
