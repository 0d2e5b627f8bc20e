// Messages to other nodes: packets that a libfabric provider (verbs;ofi_rxm, tcp;ofi_rxm), or TCP
// without one, carries under haul's own matching, and memory that such a provider reads.
//
// Opening such a provider takes 40 ms and more and 70 MB of memory, and it does not tell that a
// peer has died. So an endpoint merely listens on a TCP port until the first contact with another
// node. Two endpoints connect there (a link), agree on a provider and open it. The kernel reports
// on the link that a peer's process has gone, at once, and after half a minute that its node has.
#pragma once

#include <memory>

#include "base/error.hpp"
#include "fabric/protocol/channel.hpp"

namespace haul::fabric {

class CoreNetwork : public Network {
 public:
  // Packets of other nodes can come. Any thread.
  virtual bool has_peers() const noexcept = 0;
  // This is a child of fork: the links are closed here, so that the parent's death shows, and
  // nothing that the parent uses is touched any more; every other call does nothing.
  virtual void forked() noexcept = 0;
  // The destructor sends what has been committed (for a second at most) and says good-bye.
};

// `provider`: HAUL_FABRIC_CORE. Fills in `core` and `core_bytes` of *self, whose other fields are
// set. nullptr: there is none, and error->sentence is empty where none is needed (off, or auto on a
// node with no interface but loopback).
std::unique_ptr<CoreNetwork> open_core(const char* provider, Address* self, Error* error) noexcept;

}  // namespace haul::fabric
