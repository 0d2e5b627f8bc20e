// A matcher's inside: its parts, in the order in which a message meets them.
#pragma once

#include "fabric/protocol/matching/backlog.hpp"
#include "fabric/protocol/matching/bulk_requests.hpp"
#include "fabric/protocol/matching/parted_messages.hpp"
#include "fabric/protocol/matching/peers.hpp"
#include "fabric/protocol/matching/receiving.hpp"
#include "fabric/protocol/matching/remote.hpp"
#include "fabric/protocol/matching/sending.hpp"
#include "fabric/protocol/matching/transfers.hpp"
#include "fabric/protocol/matching/turns.hpp"
#include "fabric/protocol/matching/unexpected_messages.hpp"

namespace haul::fabric {

class MatcherParts final : public Surroundings,
                           public Sending,             // what the program sends: first packets
                           public Backlog,             // what waits for room at a peer
                           public Receiving,           // receives, and messages that match them
                           public UnexpectedMessages,  // messages that came before their receives
                           public PartedMessages,      // messages that come in several packets
                           public Pulling,             // bytes that are still with their sender
                           public Lending,             // ... at the sender
                           public BulkRequests,        // which large ones are under way
                           public RemoteAccess,        // RMA
                           public RemoteAtomics,       // atomics
                           public Peers,               // who comes, goes and breaks the rules
                           public Turns {              // one turn of all that
 public:
  MatcherParts(Network& network, Sink& sink, Regions& regions, const MatcherLimits& limits,
               const TagSalt& salt) noexcept
      : Surroundings(network, sink, regions, limits, salt),
        Sending(limits.operations),
        Receiving(limits.operations) {}
};

}  // namespace haul::fabric
