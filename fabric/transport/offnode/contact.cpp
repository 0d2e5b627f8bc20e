// Links: how two endpoints of different nodes meet, agree on a provider, and part.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "base/machine/clock.hpp"
#include "fabric/transport/offnode/network.hpp"

namespace haul::fabric {

namespace {

// Accepted connections that have not introduced themselves; beyond that the oldest is closed.
constexpr std::size_t most_strangers = 64;
constexpr unsigned accepted_at_once = 32;
// Peers whose links are listened to in one turn; more while one of them is waited for.
constexpr std::size_t heard_at_once = 16;
// Packets may arrive after the link has told of their sender's end. How long they are waited for if
// the sender died, and if it said how many there are.
constexpr std::uint64_t death_patience_ns = 50'000'000;
constexpr std::uint64_t bye_patience_ns = 2'000'000'000;

}  // namespace

LinkMessage OffnodeNetwork::message(LinkMessage::Kind kind, const OffnodePeer* to) const noexcept {
  LinkMessage message;
  message.kind = kind;
  message.from = self_;
  if (to != nullptr) std::memcpy(message.to, to->address.id, sizeof message.to);
  return message;
}

void OffnodeNetwork::set_state(OffnodePeer& peer, OffnodePeer::State state) noexcept {
  const auto is_shaking = [](OffnodePeer::State which) {
    return which == OffnodePeer::State::connecting || which == OffnodePeer::State::offered;
  };
  shaking_ -= is_shaking(peer.state);
  shaking_ += is_shaking(state);
  peer.state = state;
}

void OffnodeNetwork::turn_links() noexcept {
  accept_strangers();
  hear_strangers();
  const std::size_t count = is_shaking_hands() ? 4 * heard_at_once : heard_at_once;
  for (std::size_t i = 0; i < std::min(count, order_.size()); ++i) {
    if (next_heard_ >= order_.size()) next_heard_ = 0;
    OffnodePeer& peer = *order_[next_heard_++];
    if (peer.state == OffnodePeer::State::connecting) advance(peer);
    hear(peer);
  }
}

// ---- connections that peers make ----

void OffnodeNetwork::accept_strangers() noexcept {
  for (unsigned i = 0; i < accepted_at_once; ++i) {
    const int fd = os::accept_inet(listener_.get());
    if (fd < 0) {
      if (fd != -EAGAIN && fd != -EINTR && fd != -ECONNABORTED) {
        log(LogLevel::debug, "a peer on another node could not be let in (%s)",
            describe_errno(-fd));
      }
      return;
    }
    if (strangers_.size() == most_strangers) strangers_.erase(strangers_.begin());
    strangers_.push_back(std::make_unique<OffnodeLink>(fd));
  }
}

void OffnodeNetwork::hear_strangers() noexcept {
  std::erase_if(strangers_, [this](std::unique_ptr<OffnodeLink>& link) {
    LinkMessage offer;
    switch (link->hear(&offer)) {
      case OffnodeLink::Heard::nothing: return false;
      case OffnodeLink::Heard::closed: return true;
      case OffnodeLink::Heard::message: break;
    }
    // welcome() has taken the link if it keeps it; otherwise it is closed here.
    if (offer.kind == LinkMessage::Kind::offer) welcome(link, offer);
    return true;
  });
}

void OffnodeNetwork::refuse(OffnodeLink& link, const LinkMessage& offer, int error) noexcept {
  LinkMessage answer = message(LinkMessage::Kind::answer, nullptr);
  std::memcpy(answer.to, offer.from.id, sizeof answer.to);
  answer.status = static_cast<std::uint32_t>(error);
  link.say(answer);
}

bool OffnodeNetwork::welcome(std::unique_ptr<OffnodeLink>& link,
                             const LinkMessage& offer) noexcept {
  // An address of another node may also be one of this node's (containers have such addresses).
  if (std::memcmp(offer.to, self_.id, sizeof offer.to) != 0 || offer.from == self_) {
    refuse(*link, offer, FI_EADDRNOTAVAIL);
    return false;
  }
  OffnodePeer* known = find(offer.from.id);
  if (known != nullptr && (!(known->address == offer.from) || known->incoming != nullptr ||
                           known->leaving || known->state >= OffnodePeer::State::gone)) {
    refuse(*link, offer, FI_ECONNREFUSED);
    return false;
  }
  os::InetAddress local;
  OffnodeCarrier* carrier = nullptr;
  if (link->own_address(&local)) {
    for (const char* name = offer.providers; *name != '\0' && carrier == nullptr;
         name += std::strlen(name) + 1) {
      carrier = carrier_of(name, local);
    }
  }
  if (carrier == nullptr) {
    log(LogLevel::warning,
        "a peer on another node wants to talk by %s, which cannot be used here; unset "
        "HAUL_FABRIC_OFFNODE on all nodes, or set it to the same provider",
        offer.providers[0] != '\0' ? offer.providers : "no provider");
    refuse(*link, offer, FI_ENOSYS);
    return false;
  }
  OffnodePeer& peer = peer_of(offer.from);
  peer.incoming = std::move(link);
  peer.heard_by = carrier;
  LinkMessage answer = message(LinkMessage::Kind::answer, &peer);
  std::memcpy(answer.providers, carrier->provider().c_str(), carrier->provider().size());
  answer.name_bytes = static_cast<std::uint32_t>(carrier->name_bytes());
  std::memcpy(answer.name, carrier->name(), carrier->name_bytes());
  peer.incoming->say(answer);
  return true;
}

const std::vector<std::string>& OffnodeNetwork::available() noexcept {
  if (available_.empty()) available_ = OffnodeCarrier::available(provider_.c_str());
  return available_;
}

// The carrier by this provider, opened unless it is open. nullptr: it is not allowed or not there.
OffnodeCarrier* OffnodeNetwork::carrier_of(const char* provider,
                                           const os::InetAddress& local) noexcept {
  for (const auto& carrier : carriers_) {
    if (carrier->provider() == provider) return carrier.get();
  }
  const std::vector<std::string>& allowed = available();
  const auto found = std::find(allowed.begin(), allowed.end(), provider);
  if (found == allowed.end()) return nullptr;
  Expected<std::unique_ptr<OffnodeCarrier>> carrier = OffnodeCarrier::open(provider, local);
  if (!carrier) {
    const bool is_last = found + 1 == allowed.end();
    log(is_last ? LogLevel::warning : LogLevel::info, "%s", carrier.error().sentence);
    return nullptr;
  }
  carriers_.push_back(std::move(*carrier));
  return carriers_.back().get();
}

// ---- connections to peers ----

void OffnodeNetwork::connect(const Address& address) noexcept {
  if (forked_) return;
  OffnodePeer& peer = peer_of(address);
  if (peer.state != OffnodePeer::State::heard || peer.leaving) return;
  if (!read_places(address, &peer.places)) {
    log(LogLevel::warning,
        "a peer on another node cannot be reached, because it listens to its own node only; unset "
        "HAUL_FABRIC_OFFNODE there, or give that node a network");
    return give_up(peer, FI_EHOSTUNREACH);
  }
  set_state(peer, OffnodePeer::State::connecting);
  next_link_turn_ = 0;
  begin_attempts(peer);
}

// Connects to all places at once; the first that can be reached is asked whether it is the peer.
void OffnodeNetwork::begin_attempts(OffnodePeer& peer) noexcept {
  for (unsigned i = 0; i < peer.places.count; ++i) {
    const int fd = os::connect_inet(peer.places.addresses[i], peer.places.port);
    if (fd >= 0) {
      peer.attempts.push_back({os::Descriptor::of(fd), i});
    } else {
      peer.error = -fd;
    }
  }
}

void OffnodeNetwork::give_up(OffnodePeer& peer, int error) noexcept {
  peer.end_attempts();
  peer.outgoing.reset();
  set_state(peer, OffnodePeer::State::gone);
  tell(NetworkEvent::What::refused, peer, error);
}

void OffnodeNetwork::advance(OffnodePeer& peer) noexcept {
  for (std::size_t i = 0; i < peer.attempts.size();) {
    OffnodePeer::Attempt attempt = peer.attempts[i];
    const int result = os::connect_result(attempt.fd.get());
    if (result == -EINPROGRESS) {
      ++i;
      continue;
    }
    peer.attempts.erase(peer.attempts.begin() + static_cast<std::ptrdiff_t>(i));
    if (result != 0) {
      attempt.fd.close();
      peer.error = -result;
      continue;
    }
    peer.end_attempts();
    if (!make_offer(peer, attempt)) give_up(peer, FI_ENOSYS);
    return;
  }
  if (!peer.attempts.empty()) return;
  log(LogLevel::info, "a peer on another node cannot be reached (%s); is it still running?",
      describe_errno(peer.error));
  give_up(peer, FI_ECONNREFUSED);
}

bool OffnodeNetwork::make_offer(OffnodePeer& peer, const OffnodePeer::Attempt& attempt) noexcept {
  peer.outgoing = std::make_unique<OffnodeLink>(attempt.fd.number());
  peer.places.addresses[attempt.place] = peer.places.addresses[--peer.places.count];
  LinkMessage offer = message(LinkMessage::Kind::offer, &peer);
  std::size_t used = 0;
  for (const std::string& name : available()) {
    if (used + name.size() + 2 > sizeof offer.providers) continue;
    std::memcpy(offer.providers + used, name.c_str(), name.size() + 1);
    used += name.size() + 1;
  }
  if (used == 0) {
    log(LogLevel::error,
        "no libfabric provider %s can carry messages to other nodes here; unset "
        "HAUL_FABRIC_OFFNODE on all nodes, or set it to one that fi_info lists",
        provider_.c_str());
    return false;
  }
  set_state(peer, OffnodePeer::State::offered);
  peer.outgoing->say(offer);
  return true;
}

void OffnodeNetwork::take_answer(OffnodePeer& peer, const LinkMessage& answer) noexcept {
  if (peer.state != OffnodePeer::State::offered) return;
  if (answer.status == FI_EADDRNOTAVAIL && peer.places.count != 0) {
    peer.outgoing.reset();
    set_state(peer, OffnodePeer::State::connecting);
    return begin_attempts(peer);
  }
  os::InetAddress local;
  fi_addr_t address = FI_ADDR_UNSPEC;
  int error = static_cast<int>(std::min<std::uint32_t>(answer.status, FI_ERRNO_MAX));
  if (error == 0 && !(answer.from == peer.address)) error = FI_EADDRNOTAVAIL;
  OffnodeCarrier* carrier = nullptr;
  if (error == 0 && peer.outgoing->own_address(&local)) {
    carrier = carrier_of(answer.providers, local);
  }
  if (error == 0 && carrier == nullptr) error = FI_ENOSYS;
  if (error == 0) {
    std::uint8_t name[OffnodeCarrier::name_capacity] = {};
    static_assert(sizeof name == sizeof answer.name);
    std::memcpy(name, answer.name, answer.name_bytes);
    error = -carrier->insert(name, answer.name_bytes, &address);
  }
  if (error == FI_EADDRNOTAVAIL) {
    log(LogLevel::warning,
        "a peer on another node is not at the addresses that it has named; give its node one that "
        "no other node has, or set HAUL_FABRIC_OFFNODE=off there");
  } else if (error != 0) {
    log(LogLevel::warning,
        "a peer on another node refuses to talk (%s); HAUL_FABRIC_OFFNODE must allow the same "
        "provider on all nodes, and its log may say more",
        describe_errno(error));
  }
  if (error != 0) {
    return give_up(peer, error);
  }
  peer.outbox.open(*carrier, address);
  set_state(peer, OffnodePeer::State::connected);
  tell(NetworkEvent::What::connected, peer, 0);
}

// ---- what peers say, and that they go ----

void OffnodeNetwork::hear(OffnodePeer& peer) noexcept {
  hear(peer, peer.outgoing);
  hear(peer, peer.incoming);
}

void OffnodeNetwork::hear(OffnodePeer& peer, std::unique_ptr<OffnodeLink>& link) noexcept {
  if (!link || peer.silent || peer.state >= OffnodePeer::State::gone) return;
  LinkMessage said;
  const OffnodeLink::Heard heard = link->hear(&said);
  if (heard == OffnodeLink::Heard::nothing) return;
  if (heard == OffnodeLink::Heard::closed) {
    peer.silent = !peer.said_bye;
    return begin_leaving(peer, FI_ECONNRESET);
  }
  if (peer.leaving) return;
  if (said.kind == LinkMessage::Kind::answer && &link == &peer.outgoing) {
    return take_answer(peer, said);
  }
  if (said.kind != LinkMessage::Kind::bye) return;
  peer.said_bye = true;
  peer.silent = said.status == 0;
  peer.bye_packets = said.packets;
  begin_leaving(peer, 0);
}

void OffnodeNetwork::say_bye(OffnodePeer& peer, int reason) noexcept {
  LinkMessage bye = message(LinkMessage::Kind::bye, &peer);
  bye.status = static_cast<std::uint32_t>(reason);
  bye.packets = peer.outbox.committed();
  if (peer.outgoing) peer.outgoing->say(bye);
  if (peer.incoming) peer.incoming->say(bye);
}

void OffnodeNetwork::begin_leaving(OffnodePeer& peer, int error) noexcept {
  if (peer.leaving || peer.state >= OffnodePeer::State::gone) return;
  peer.leaving = true;
  peer.error = error;
  peer.patience_ns = now_ns() + (error == 0 ? bye_patience_ns : death_patience_ns);
  leaving_.push_back(&peer);
  next_link_turn_ = 0;
  next_poll_ = 0;
}

void OffnodeNetwork::settle(std::uint64_t now) noexcept {
  std::erase_if(leaving_, [&](OffnodePeer* peer) {
    const bool is_over = now >= peer->patience_ns;
    const bool is_complete = peer->said_bye && peer->arrived >= peer->bye_packets;
    if (peer->queued != 0 || (!is_over && !is_complete)) return false;
    if (peer->state == OffnodePeer::State::connecting ||
        peer->state == OffnodePeer::State::offered) {
      give_up(*peer, FI_ECONNREFUSED);
    } else {
      set_state(*peer, OffnodePeer::State::gone);
      const bool is_whole = peer->error == 0 && is_complete;
      tell(is_whole ? NetworkEvent::What::ended : NetworkEvent::What::died, *peer,
           is_whole ? 0 : FI_ECONNRESET);
    }
    return true;
  });
}

}  // namespace haul::fabric
