// Receives, and the messages that match them.
#pragma once

#include "fabric/protocol/matching/index/posted_index.hpp"
#include "fabric/protocol/matching/matcher_part.hpp"
#include "fabric/protocol/pool.hpp"

namespace haul::fabric {

inline bool tags_match(std::uint64_t wanted, std::uint64_t ignore, std::uint64_t tag) noexcept {
  return ((wanted ^ tag) & ~ignore) == 0;
}

// What fi_cq says of the completion of a receive.
inline std::uint64_t receive_flags(bool tagged, std::uint8_t packet_flags) noexcept {
  return FI_RECV | (tagged ? FI_TAGGED : FI_MSG) |
         ((packet_flags & packet_data) != 0 ? FI_REMOTE_CQ_DATA : 0);
}

class Receiving : public MatcherPart<Receiving> {
 public:
  explicit Receiving(std::size_t limit) noexcept : incoming(limit) {}

  ssize_t receive(Peer* source, const ReceiveRequest& request) noexcept;
  int cancel(void* context) noexcept;
  void on_message(Peer& peer, const ReceivedPacket& packet) noexcept;
  void on_request(Peer& peer, const ReceivedPacket& packet) noexcept;

  // The oldest posted receive that a message matches.
  Incoming* match_posted(Peer& peer, bool tagged, std::uint64_t tag) noexcept;
  // The receive that a message of `length` bytes goes to: the posted one, or its part of a
  // multi-receive; nullptr if there is no operation left for that.
  Incoming* assign(Incoming& posted, Peer& peer, std::uint64_t tag, std::uint64_t data,
                   std::uint8_t flags, std::size_t length) noexcept;
  void finish_receive(Incoming& receive, int error) noexcept;
  struct WholeMessage {
    std::uint64_t tag, data;
    std::uint8_t flags;  // of its packet
    const std::byte* payload;
    std::size_t bytes;
    HaulPrivateCopy copies_out;  // how the payload is best read
  };
  // A whole message into a receive that is no multi-receive, for a sender that waits for no word:
  // what most of them are.
  void deliver(Incoming& receive, Peer& peer, const WholeMessage& message) noexcept;
  // Receives that nobody can match any more: those of a peer that is lost, or, where no peer is
  // left, those from any source.
  void fail_posted(Peer& peer, int error) noexcept { fail_posted(peer.posted, error); }
  void fail_posted_any(int error) noexcept { fail_posted(posted_any_, error); }

  Pool<Incoming> incoming;

 private:
  static Ending posted_ending(const Incoming& posted) noexcept;
  void end_posted(Incoming& posted, int error) noexcept;
  void fail_posted(PostedList (&posted)[2], int error) noexcept;
  // No message goes to it any more.
  void unpost(Incoming& posted) noexcept;
  // Where the first receive of the list is not the one.
  Incoming* search(PostedList& list, const Peer* source, std::uint64_t tag) noexcept;
  void tell_received(const Incoming& receive, int error) noexcept;

  std::uint64_t next_order_ = 0;
  PostedList posted_any_[2];  // [tagged]
  PostedIndex index_;
};

}  // namespace haul::fabric
