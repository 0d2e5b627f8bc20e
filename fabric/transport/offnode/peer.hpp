// One endpoint of another node, as the offnode network sees it, and the packets to it.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/os/descriptor.hpp"
#include "fabric/protocol/transport_contract.hpp"
#include "fabric/transport/offnode/carrier/carrier.hpp"
#include "fabric/transport/offnode/link.hpp"

namespace haul::fabric {

// Packets to one peer: into the provider's buffers, and from there in order. What the provider does
// not take at once waits here, so a peer that does not read holds a bounded number of buffers and
// stops nobody else.
class OffnodeOutbox final : public Outbox {
 public:
  OffnodeOutbox(const Address& self, OffnodePeer& peer) noexcept;

  Slot reserve(std::size_t payload_bytes, Lane lane) noexcept override;
  void commit() noexcept override;

  // From now on packets leave by `carrier`, to `address`.
  void open(OffnodeCarrier& carrier, fi_addr_t address) noexcept;
  // No more packets leave; those that wait are forgotten.
  void shut() noexcept;
  // Hands waiting packets to the provider. 0, -FI_EAGAIN if some still wait, or -FI_E*.
  int push() noexcept;
  // A packet has left or failed.
  void departed(Departure& departure) noexcept;

  OffnodeCarrier* carrier() const noexcept { return carrier_; }
  fi_addr_t address() const noexcept { return address_; }
  bool flushed() const noexcept { return in_flight_ == 0 && first_ == nullptr; }
  bool waiting() const noexcept { return first_ != nullptr; }
  std::uint64_t committed() const noexcept { return committed_; }

 private:
  std::uint32_t& buffers_like(const Departure& departure) noexcept;
  void give_back(Departure& departure) noexcept;

  const Address& self_;
  OffnodePeer& peer_;
  OffnodeCarrier* carrier_ = nullptr;
  fi_addr_t address_ = FI_ADDR_UNSPEC;
  Departure* slot_ = nullptr;                         // handed out by reserve()
  Departure *first_ = nullptr, *last_ = nullptr;      // waiting
  std::uint32_t control_ = 0, eager_ = 0, bulk_ = 0;  // buffers in use
  std::uint32_t in_flight_ = 0;
  std::uint64_t committed_ = 0;  // packets ever
};

struct OffnodePeer {
  OffnodePeer(const Address& self, const Address& its) noexcept
      : address(its), outbox(self, *this) {}

  enum class State : std::uint8_t {
    heard,       // it has connected to us
    connecting,  // we connect to it: `attempts`
    offered,     // and wait for its answer
    connected,
    gone,     // its last event has been told
    dropped,  // the protocol knows it no more
  };
  const Address address;
  State state = State::heard;
  OffnodeOutbox outbox;
  std::unique_ptr<OffnodeLink> outgoing, incoming;
  OffnodeCarrier* heard_by = nullptr;  // our carrier that it sends to and reads by

  struct Attempt {
    os::Descriptor fd;
    unsigned place = 0;
  };
  OffnodePlaces places;  // those not tried in vain
  std::vector<Attempt> attempts;
  void end_attempts() noexcept {
    for (Attempt& attempt : attempts) attempt.fd.close();
    attempts.clear();
  }

  std::uint64_t arrived = 0;  // packets handed to the protocol
  std::uint32_t queued = 0;   // packets not yet

  // Its end: told once what it has sent is handed over, or `patience_ns` (of now_ns()) is over.
  bool leaving = false, said_bye = false;
  // The link has told that the peer's process or endpoint is gone: nothing comes but what is here.
  bool silent = false;
  std::uint64_t bye_packets = 0;
  std::uint64_t patience_ns = 0;
  int error = 0;
};

}  // namespace haul::fabric
