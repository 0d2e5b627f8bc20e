// Packets to one peer of another node.

#include <cstring>

#include "fabric/transport/offnode/peer.hpp"
#include "fabric/transport/offnode/wire.hpp"

namespace haul::fabric {

namespace {

constexpr std::size_t most_payload = (OffnodeCarrier::packet_bytes - head_bytes) / 64 * 64;

// Buffers that one peer may hold, by lane.
constexpr std::uint32_t control_limit = 256, eager_limit = 32, bulk_limit = 32;

}  // namespace

OffnodeOutbox::OffnodeOutbox(const Address& self, OffnodePeer& peer) noexcept
    : self_(self), peer_(peer) {
  eager_bytes = packet_bytes = piece_bytes = most_payload;
  off_node = true;
}

void OffnodeOutbox::open(OffnodeCarrier& carrier, fi_addr_t address) noexcept {
  carrier_ = &carrier;
  address_ = address;
}

std::uint32_t& OffnodeOutbox::buffers_like(const Departure& departure) noexcept {
  if (departure.control) return control_;
  return departure.bulk ? bulk_ : eager_;
}

void OffnodeOutbox::give_back(Departure& departure) noexcept {
  --buffers_like(departure);
  carrier_->give(departure);
}

Outbox::Slot OffnodeOutbox::reserve(std::size_t payload_bytes, Lane lane) noexcept {
  if (carrier_ == nullptr || payload_bytes > most_payload) return {};
  if (slot_ != nullptr) give_back(*slot_);
  slot_ = nullptr;
  const bool control = lane == Lane::control, bulk = lane == Lane::bulk;
  if (control ? control_ >= control_limit : bulk ? bulk_ >= bulk_limit : eager_ >= eager_limit) {
    return {};
  }
  slot_ = carrier_->take(head_bytes + payload_bytes);
  if (slot_ == nullptr) return {};
  slot_->control = control;
  slot_->bulk = bulk;
  slot_->peer = &peer_;
  ++buffers_like(*slot_);
  return {reinterpret_cast<Header*>(slot_->data + sizeof(OffnodePrefix)), slot_->data + head_bytes};
}

void OffnodeOutbox::commit() noexcept {
  const OffnodePrefix prefix{{self_.id[0], self_.id[1]}, committed_++};
  std::memcpy(slot_->data, &prefix, sizeof prefix);
  if (last_ != nullptr) {
    last_->next = slot_;
  } else {
    first_ = slot_;
  }
  last_ = slot_;
  slot_ = nullptr;
  // A failure comes again at the next push(), whose caller deals with it.
  if (first_ == last_) push();
}

int OffnodeOutbox::push() noexcept {
  while (first_ != nullptr) {
    Departure& departure = *first_;
    Departure* const next = departure.next;
    const int error = carrier_->send(departure, address_);
    if (error != 0) return error;
    departure.next = nullptr;
    ++in_flight_;
    first_ = next;
    if (next == nullptr) last_ = nullptr;
  }
  return 0;
}

void OffnodeOutbox::departed(Departure& departure) noexcept {
  --in_flight_;
  give_back(departure);
}

void OffnodeOutbox::shut() noexcept {
  if (carrier_ == nullptr) return;
  if (slot_ != nullptr) give_back(*slot_);
  slot_ = nullptr;
  while (Departure* departure = first_) {
    first_ = departure->next;
    departure->next = nullptr;
    give_back(*departure);
  }
  last_ = nullptr;
}

}  // namespace haul::fabric
