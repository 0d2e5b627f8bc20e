// Loans, and reads of them.
#include "fabric/transport/offnode/offnode_access.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>

#include "base/log.hpp"
#include "base/machine/clock.hpp"
#include "fabric/protocol/matcher.hpp"
#include "fabric/transport/offnode/network.hpp"

namespace haul::fabric {

namespace {

// Shorter messages cost less as packets: tcp between two namespaces took 96 us for 64 KiB (100
// read), 131 for 128 KiB (119), 3400 to 3700 for 4 MiB (1500 to 1700).
constexpr std::size_t least_lent_bytes = std::size_t{128} << 10;
constexpr std::size_t part_bytes = std::size_t{512} << 10;
// A peer that has gone sends nothing more, and what the kernel still holds of it is read, or fails,
// with the next polls. A peer that lives and was dropped may still answer, so it is given longer.
constexpr std::uint64_t silent_patience_ns = 100'000'000;
constexpr std::uint64_t dropped_patience_ns = 2'000'000'000;

}  // namespace

OffnodePeer* OffnodeAccess::find(const Peer& peer) const noexcept {
  return network_.find(Matcher::address_of(peer));
}

MessageWays OffnodeAccess::ways(const Peer& peer, const MemoryPlace& place, std::size_t,
                                bool) const noexcept {
  const OffnodePeer* known = find(peer);
  const bool can = known != nullptr && known->state == OffnodePeer::State::connected &&
                   place.pieces == 1 && known->outbox.carrier()->reads();
  return can ? MessageWay::direct : MessageWay::pieces;
}

MemoryPlace OffnodeAccess::describe(const Peer& peer, const iovec* local, std::size_t count,
                                    bool* huge_pages) noexcept {
  *huge_pages = false;
  MemoryPlace place;
  const OffnodePeer* known = find(peer);
  if (known == nullptr || known->heard_by == nullptr || !known->heard_by->reads() || count != 1 ||
      local[0].iov_len < least_lent_bytes) {
    return place;
  }
  const int error =
      known->heard_by->lend(local[0].iov_base, local[0].iov_len, &place.address, &place.arena);
  if (error == 0) {
    place.pieces = 1;
  } else {
    log(LogLevel::debug, "%s cannot lend %zu bytes to other nodes (error %d): they go in packets",
        known->heard_by->provider().c_str(), local[0].iov_len, -error);
  }
  return place;
}

void OffnodeAccess::withdraw(const Peer& peer, const MemoryPlace& place) noexcept {
  const OffnodePeer* known = find(peer);
  if (known != nullptr && known->heard_by != nullptr) known->heard_by->take_back(place.arena);
}

std::int64_t OffnodeAccess::start(Peer& peer, Direction direction, const iovec* local,
                                  std::size_t count, const MemoryPlace& place, std::uint64_t offset,
                                  std::size_t, bool) noexcept {
  OffnodePeer* known = find(peer);
  std::uint64_t address = 0;
  if (known == nullptr || direction != Direction::pull ||
      ways(peer, place, 0, false).only(MessageWay::pieces) ||
      __builtin_add_overflow(place.address, offset, &address)) {
    return -FI_EOPNOTSUPP;
  }
  std::size_t index = 0;
  while (index < transfers_.size() &&
         (transfers_[index]->taken || transfers_[index]->under_way != 0)) {
    ++index;
  }
  if (index == transfers_.size()) transfers_.push_back(std::make_unique<Transfer>());
  Transfer& transfer = *transfers_[index];
  transfer.taken = true;
  transfer.peer = known;
  transfer.carrier = known->outbox.carrier();
  transfer.to = Pieces(local, count);
  transfer.address = address;
  transfer.key = place.arena;
  transfer.asked = 0;
  transfer.error = 0;
  transfer.alone_ns = 0;
  transfer.refused = nullptr;
  for (Reading& part : transfer.parts) {
    part.kind = CarrierOperation::Kind::reading;
    part.user = &transfer;
  }
  ask(transfer);
  return static_cast<std::int64_t>(index) + 1;
}

// Asks for the next parts, as far as the carrier takes them.
void OffnodeAccess::ask(Transfer& transfer) noexcept {
  for (Reading& part : transfer.parts) {
    if (transfer.error != 0 || transfer.asked == transfer.to.bytes) return;
    if (part.busy || (transfer.refused != nullptr && transfer.refused != &part)) continue;
    const std::size_t bytes = std::min(part_bytes, transfer.to.bytes - transfer.asked);
    const Pieces to = transfer.to.slice(transfer.asked, bytes);
    const bool in_one = transfer.to.count == 1;
    part.before = in_one ? transfer.asked : 0;
    part.behind = in_one ? transfer.to.bytes - transfer.asked - bytes : 0;
    const int error = transfer.carrier->read(part, to.at, to.count, transfer.peer->outbox.address(),
                                             transfer.address + transfer.asked, transfer.key);
    transfer.refused = error == -FI_EAGAIN ? &part : nullptr;
    if (error == -FI_EAGAIN) return;
    if (error != 0) {
      transfer.error = -error;
      return;
    }
    part.busy = true;
    ++transfer.under_way;
    transfer.asked += bytes;
  }
}

void OffnodeAccess::was_read(Reading& reading, int error) noexcept {
  auto& transfer = *static_cast<Transfer*>(reading.user);
  reading.busy = false;
  --transfer.under_way;
  if (error != 0 && transfer.error == 0) transfer.error = error;
}

// Nothing more is asked for once the peer has gone; what was asked for ends by itself, in time.
bool OffnodeAccess::is_over(Transfer& transfer) noexcept {
  const OffnodePeer& peer = *transfer.peer;
  if (network_.is_forked()) {
    transfer.error = FI_ECANCELED;  // the parent's, and none of this process's
    return true;
  }
  if (!peer.leaving && peer.state < OffnodePeer::State::gone) {
    ask(transfer);
    return transfer.under_way == 0 && (transfer.error != 0 || transfer.asked == transfer.to.bytes);
  }
  network_.poll_once();
  if (transfer.error == 0 && transfer.asked != transfer.to.bytes) transfer.error = FI_ECONNRESET;
  if (transfer.under_way == 0) return true;
  const std::uint64_t now = now_ns();
  if (transfer.alone_ns == 0) transfer.alone_ns = now;
  if (now - transfer.alone_ns <= (peer.silent ? silent_patience_ns : dropped_patience_ns))
    return false;
  if (!peer.silent) {
    log(LogLevel::warning,
        "a peer on another node was dropped and does not answer a read; should it do so later, it "
        "changes memory that the program has got back: end its process");
  }
  transfer.error = FI_ECONNRESET;
  return true;
}

void OffnodeAccess::give_up_refused(Transfer& transfer) noexcept {
  if (transfer.refused != nullptr) transfer.carrier->give_up(*transfer.refused);
  transfer.refused = nullptr;
}

int OffnodeAccess::test(std::int64_t ticket) noexcept {
  const auto index = static_cast<std::size_t>(ticket - 1);
  if (ticket <= 0 || index >= transfers_.size() || !transfers_[index]->taken) return -FI_EINVAL;
  Transfer& transfer = *transfers_[index];
  if (!is_over(transfer)) return 0;
  if (!network_.is_forked()) give_up_refused(transfer);
  transfer.taken = false;
  return transfer.error != 0 ? -transfer.error : 1;
}

}  // namespace haul::fabric
