// What all parts of a matcher have in common: how they reach each other, and what surrounds them.
#pragma once

#include <memory>

#include "fabric/protocol/matcher.hpp"
#include "fabric/protocol/matching/index/tag_table.hpp"
#include "fabric/protocol/operation.hpp"

namespace haul::fabric {

class MatcherParts;  // all of them: matcher_parts.hpp

// A part of a matcher. All parts are bases of one object, so the way from one to another is a
// constant offset: it costs no load and no virtual call, which messages of a few hundred
// nanoseconds would feel.
template <class Self>
class MatcherPart {
 protected:
  template <class Other>
  Other& the() noexcept {
    return static_cast<MatcherParts&>(static_cast<Self&>(*this));
  }
  template <class Other>
  const Other& the() const noexcept {
    return static_cast<const MatcherParts&>(static_cast<const Self&>(*this));
  }

  Network& network() const noexcept;
  Sink& sink() const noexcept;
  Regions& regions() const noexcept;
  MatcherLimits& limits() noexcept;
  Statistics& statistics() noexcept;
};

// Whom a matcher works for, and what it counts.
class Surroundings {
 public:
  Surroundings(Network& n, Sink& s, Regions& r, const MatcherLimits& l,
               const TagSalt& salt) noexcept
      : network(n), sink(s), regions(r), limits(l), tag_hash(salt) {}

  void tell(const Ending& ending, int error) noexcept {
    if (!ending.told) return;
    CompletionNotice completion;
    completion.event = ending.event;
    completion.wanted = ending.wanted;
    completion.context = ending.context;
    completion.flags = ending.flags;
    completion.data = ending.data;
    completion.tag = ending.tag;
    completion.error = error;
    sink.complete(completion);
  }
  // One operation of the group has ended; the last one ends what the program asked for.
  void leave(std::shared_ptr<Group> group, int error) noexcept {
    if (error != 0) group->error = error;
    if (--group->remaining == 0) tell(group->ending, group->error);
  }

  Network& network;
  Sink& sink;
  Regions& regions;
  MatcherLimits limits;
  Statistics statistics;
  const TagHash tag_hash;
};

template <class Self>
Network& MatcherPart<Self>::network() const noexcept {
  return the<Surroundings>().network;
}
template <class Self>
Sink& MatcherPart<Self>::sink() const noexcept {
  return the<Surroundings>().sink;
}
template <class Self>
Regions& MatcherPart<Self>::regions() const noexcept {
  return the<Surroundings>().regions;
}
template <class Self>
MatcherLimits& MatcherPart<Self>::limits() noexcept {
  return the<Surroundings>().limits;
}
template <class Self>
Statistics& MatcherPart<Self>::statistics() noexcept {
  return the<Surroundings>().statistics;
}

}  // namespace haul::fabric
