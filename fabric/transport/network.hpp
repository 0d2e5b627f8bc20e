// The network of one endpoint, as the endpoint room opens it: rings to the peers of its node, a
// carrier to others.
#pragma once

#include "base/error.hpp"
#include "base/private.hpp"
#include "fabric/protocol/statistics.hpp"
#include "fabric/protocol/transport_contract.hpp"

namespace haul::fabric {

class EndpointNetwork : public Network {
 public:
  virtual const Address& address() const noexcept = 0;
  const Address* self() const noexcept final { return &address(); }

  // ---- sleeping (wait objects) ----
  // A descriptor of this process's that becomes readable when the doorbell rings; -errno if there
  // is none. Thread-safe, as are the next two.
  virtual int doorbell() noexcept = 0;
  // From now on a packet or an event rings the doorbell. The caller then makes progress once more
  // before it sleeps: what came before is not rung for.
  virtual void arm() noexcept = 0;
  // No more ringing; empties the descriptor.
  virtual void disarm() noexcept = 0;

  // The counters that `haul top` shows for this endpoint; `haul run --report` is told of them at
  // once. nullptr, before the matcher and with it the counters go, makes the last report.
  virtual void publish(const Statistics* statistics) noexcept = 0;
  // This process is a child of the one that opened it, and no fork handler could put it in order:
  // after a bare clone, or a fork during which something was changed. Then nothing else may be
  // called, and the network is never destroyed.
  virtual bool lost() const noexcept = 0;
  // The destructor tells peers that this endpoint has ended, in good order.
};

// What the planner says of messages; read once a process.
inline const HaulPrivateMessageLimits& message_limits() noexcept {
  static const HaulPrivateMessageLimits limits = [] {
    HaulPrivateMessageLimits read;
    haul_private_message_limits(&read);
    return read;
  }();
  return limits;
}

}  // namespace haul::fabric
