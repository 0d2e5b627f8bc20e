// Messages that came before their receives. What is kept of them is bounded: at half of the limit,
// the peers whose messages fill it are told to send requests only, which leave the bytes with the
// sender, until no more than a quarter is kept.
#pragma once

#include <memory>
#include <vector>

#include "fabric/protocol/matching/index/kept_index.hpp"
#include "fabric/protocol/matching/matcher_part.hpp"
#include "fabric/protocol/matching/receiving.hpp"

namespace haul::fabric {

class UnexpectedMessages : public MatcherPart<UnexpectedMessages> {
 public:
  // The oldest one that a receive matches. source nullptr: from anybody.
  Unexpected* match_unexpected(Peer* source, bool tagged, std::uint64_t tag,
                               std::uint64_t ignore) noexcept;
  // `whole`: the packet has the bytes, or the first of them; else it is a request.
  void keep(Peer& peer, const ReceivedPacket& packet, bool whole) noexcept;
  // The posted receive takes the message.
  void take(Incoming& posted, Unexpected& message) noexcept;
  ssize_t peek(Peer* source, const ReceiveRequest& request) noexcept;
  ssize_t claim(const ReceiveRequest& request) noexcept;

 private:
  void drop(Unexpected& message) noexcept;
  void unlink(Unexpected& message) noexcept;
  // Where the first message of the list in question is another one.
  Unexpected* search(Peer* source, std::uint64_t tag, std::uint64_t ignore) noexcept;
  void throttle() noexcept;

  std::vector<std::unique_ptr<Unexpected[]>> slabs_;
  Unexpected* free_ = nullptr;
  std::size_t kept_bytes_ = 0;
  List<Unexpected, OfAll> unexpected_[2];  // [tagged]
  KeptIndex index_;
};

inline Unexpected* UnexpectedMessages::match_unexpected(Peer* source, bool tagged,
                                                        std::uint64_t tag,
                                                        std::uint64_t ignore) noexcept {
  Unexpected* front =
      source != nullptr ? source->unexpected[tagged].front() : unexpected_[tagged].front();
  if (front == nullptr || !tagged || tags_match(tag, ignore, front->tag)) return front;
  return search(source, tag, ignore);
}

}  // namespace haul::fabric
