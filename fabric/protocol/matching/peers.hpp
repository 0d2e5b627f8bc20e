// Peers that come, go and break the rules.
#pragma once

#include <memory>
#include <unordered_map>

#include "fabric/protocol/matching/matcher_part.hpp"

namespace haul::fabric {

class Peers : public MatcherPart<Peers> {
 public:
  struct AddressHash {
    std::size_t operator()(const Address& address) const noexcept { return address.hash(); }
  };

  // Made if new.
  Peer* peer_of(const Address& address) noexcept;
  // Begins to connect if need be. 0, or why nothing can be sent: -FI_E*.
  int reach(Peer& peer) noexcept;
  void take_news() noexcept;
  // The peer has broken a rule. Its inbox is in use now, so the code that reads it drops the peer
  // afterwards.
  void garbage(Peer& peer, const char* what) noexcept;
  void drop_faulty(Peer& peer) noexcept;
  // Whether a peer makes this side keep more than any honest one would; then it is dropped.
  bool exhausts(Peer& peer) noexcept;

  std::unordered_map<Address, std::unique_ptr<Peer>, AddressHash> peers;
  bool occupied = false;  // in the middle of lists and packets that news might take away

 private:
  void hear_out(Peer& peer, int error) noexcept;
  void lose(Peer& peer, int error) noexcept;
};

}  // namespace haul::fabric
