// Places, extents, tickets.
#include "fabric/transport/local/local_access.hpp"

#include <rdma/fi_errno.h>

#include "base/knobs.hpp"
#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/private.hpp"
#include "fabric/protocol/matcher.hpp"
#include "fabric/transport/local/fault_around.hpp"
#include "fabric/transport/local/local.hpp"
#include "fabric/transport/spare_core.hpp"

namespace haul::fabric {
namespace {

// Between cores of an EPYC that share an L3 the kernel moves 45000 bytes a microsecond of huge
// pages; a mapping gives 65000, the ring 50000. Between distant cores all three are slower to the
// same degree. So huge pages mostly pay, and are tried against the ring (on a Zen 3 1 MiB took 106
// us by the kernel where the ring was calibrated at 66). For small pages the planner says what is
// likely.
constexpr std::size_t huge_from_bytes = HugePages::smallest_bytes;

constexpr std::size_t inline_grain_bytes = std::size_t{256} << 10;
constexpr std::size_t max_pieces_here = 64;
// How long a peer that is about to be forgotten waits for copies, all together.
constexpr std::uint64_t finish_ns = 2'000'000'000;

int fabric_error(int result) noexcept {
  switch (result) {
    case HAUL_EFAULT: return -FI_EFAULT;
    case HAUL_EPERM: return -FI_EACCES;
    case HAUL_EPEER: return -FI_ECONNRESET;
    case HAUL_EAGAIN: return -FI_EAGAIN;
    case HAUL_ENOMEM: return -FI_ENOMEM;
    case HAUL_EINVAL: return -FI_EINVAL;
    default: return -FI_EIO;
  }
}

}  // namespace

LocalPeer* LocalAccess::find(const Peer& peer) const noexcept {
  return network_.find(Matcher::address_of(peer));
}

MessageWays LocalAccess::ways(const Peer& peer, const MemoryPlace& place, std::size_t bytes,
                              bool huge_pages) const noexcept {
  const LocalPeer* known = find(peer);
  if (known == nullptr || known->lost || known->reach == nullptr || place.pieces != 1)
    return MessageWay::pieces;
  if (place.arena != 0)
    return known->reach->mapped(place.address, bytes) != nullptr ? mapped_ways(peer, bytes)
                                                                 : MessageWays(MessageWay::pieces);
  if (is_own(peer)) return mapped_ways(peer, bytes);
  const HaulPrivateMessageLimits& limits = network_.limits();
  const bool huge = huge_pages && bytes >= huge_from_bytes;
  if ((!huge && bytes < limits.kernel_try_from_bytes) || !known->reach->has_kernel())
    return MessageWay::pieces;
  if (limits.kernel_fixed) return MessageWay::direct;
  return huge || bytes >= limits.kernel_from_bytes
             ? MessageWays(MessageWay::direct, {MessageWay::pieces})
             : MessageWays(MessageWay::pieces, {MessageWay::direct});
}

// Each of the ways is soonest for some programs (docs/design/messages.md has the figures), so all
// are tried but where messages go in parts unasked. Own memory has no other way.
MessageWays LocalAccess::mapped_ways(const Peer& peer, std::size_t bytes) const noexcept {
  const HaulPrivateMessageLimits& limits = network_.limits();
  const bool streamed = bytes >= limits.stream_from_bytes;
  const MessageWay usual = streamed ? MessageWay::streamed : MessageWay::direct;
  if (bytes <= in_parts_bytes || is_own(peer)) return usual;
  if (limits.stream_fixed) return {usual, {MessageWay::pieces}};
  return {usual, {MessageWay::direct, MessageWay::streamed, MessageWay::pieces}};
}

MemoryPlace LocalAccess::describe(const Peer& peer, const iovec* local, std::size_t count,
                                  bool* huge_pages) noexcept {
  *huge_pages = false;
  MemoryPlace place;
  LocalPeer* known = find(peer);
  if (known == nullptr || count != 1) return place;
  place.pieces = 1;
  if (haul_private_in_arena(local[0].iov_base, local[0].iov_len, &place.address)) {
    place.arena = 1;
    network_.share_arena(Matcher::address_of(peer), *known);
    if (known->out != nullptr)
      known->out->segment().writer_cpu.store(static_cast<std::uint32_t>(os::current_cpu() + 1),
                                             std::memory_order_relaxed);
    return place;
  }
  place.address = reinterpret_cast<std::uintptr_t>(local[0].iov_base);
  *huge_pages = network_.huge_pages().use(local[0].iov_base, local[0].iov_len);
  return place;
}

bool LocalAccess::can_be_mapped(const Peer& peer, const iovec& local) const noexcept {
  std::uint64_t offset = 0;
  return find(peer) != nullptr && haul_private_in_arena(local.iov_base, local.iov_len, &offset);
}

bool LocalAccess::is_own(const Peer& peer) const noexcept {
  return Matcher::address_of(peer) == network_.address();
}

// A peer's place as an extent for haul; false if it cannot be reached.
bool LocalAccess::remote_extent(LocalPeer& peer, bool own, const MemoryPlace& place,
                                std::uint64_t offset, std::size_t bytes,
                                haul_extent* extent) noexcept {
  std::uint64_t at = 0;
  if (peer.lost || peer.reach == nullptr || place.pieces != 1 ||
      __builtin_add_overflow(place.address, offset, &at)) {
    return false;
  }
  extent->length = bytes;
  if (place.arena != 0) {
    extent->address = peer.reach->mapped(at, bytes);
    return extent->address != nullptr;
  }
  extent->address = reinterpret_cast<void*>(at);
  extent->space = HAUL_SPACE_SELF;
  if (own) return true;
  extent->space = peer.reach->space();
  return extent->space != HAUL_SPACE_SELF;
}

std::int64_t LocalAccess::start(Peer& peer, Direction direction, const iovec* local,
                                std::size_t count, const MemoryPlace& place, std::uint64_t offset,
                                std::size_t bytes, bool streamed) noexcept {
  LocalPeer* known = find(peer);
  haul_extent remote{};
  if (known == nullptr || count > max_pieces_here ||
      !remote_extent(*known, is_own(peer), place, offset, bytes, &remote)) {
    return -FI_EOPNOTSUPP;
  }
  haul_extent here[max_pieces_here];
  for (std::size_t i = 0; i < count; ++i)
    here[i] = haul_extent{HAUL_SPACE_SELF, 0, local[i].iov_base, local[i].iov_len};
  haul_request request{};
  request.size = sizeof request;
  const bool pulls = direction == Direction::pull;
  haul_extent& single = pulls ? request.dst : request.src;
  if (count == 1) {
    single = here[0];
  } else if (pulls) {
    request.dst_vector = here;
    request.dst_count = static_cast<std::uint32_t>(count);
  } else {
    request.src_vector = here;
    request.src_count = static_cast<std::uint32_t>(count);
  }
  (pulls ? request.src : request.dst) = remote;
  // (How process_vm_readv stores what it copies, nobody can choose.)
  if (streamed && remote.space == HAUL_SPACE_SELF) request.dst_affinity = HAUL_NON_CACHEABLE;
  std::uint64_t offset_here = 0;
  const bool into_arena =
      pulls ? count == 1 && haul_private_in_arena(local[0].iov_base, bytes, &offset_here)
            : place.arena != 0;
  if (into_arena) fault_around(request.dst.address, bytes);
  if (!core_to_spare()) request.flags = HAUL_INLINE;
  haul_ticket ticket{};
  const int taken = haul_submit(&request, 1, &ticket);
  if (taken != 1) return fabric_error(taken);
  const int result = haul_test(ticket);
  if (result == 0) return keep(ticket, *known);
  return result > 0 ? 0 : ended(*known, result);
}

std::int64_t LocalAccess::offload(Peer& peer, const iovec* local, std::size_t count,
                                  const MemoryPlace& place, std::size_t bytes) noexcept {
  LocalPeer* known = find(peer);
  haul_extent remote{};
  if (known == nullptr || count != 1 || place.arena == 0 ||
      !remote_extent(*known, is_own(peer), place, 0, bytes, &remote))
    return no_device;
  const std::uint32_t cpu =
      known->in != nullptr ? known->in->segment().writer_cpu.load(std::memory_order_relaxed) : 0;
  haul_ticket ticket{};
  const bool taken = haul_private_offload(local[0].iov_base, remote.address, bytes,
                                          static_cast<std::int32_t>(cpu) - 1, &ticket);
  return taken ? keep(ticket, *known) : no_device;
}

std::uint64_t LocalAccess::left_ns(std::int64_t ticket) noexcept {
  const auto index = static_cast<std::size_t>(ticket - 1);
  if (ticket <= 0 || index >= copies_.size() || !copies_[index].taken || copies_[index].over)
    return 0;
  return haul_private_left_ns(&copies_[index].ticket);
}

// The FI_E* for a result. After a refusal by the kernel no more copies are asked of it.
int LocalAccess::ended(const LocalPeer& peer, int result) noexcept {
  if (result == HAUL_EPERM || result == HAUL_ENOTSUP || result == HAUL_ECLOSED)
    peer.reach->lose_kernel(haul_strerror(result));
  return fabric_error(result);
}

// The mover must not take a core on which a rank computes or waits, so there has to be one core
// more than processes that exchange messages. A thread that has this core already needs no mover.
bool LocalAccess::core_to_spare() const noexcept {
  if (copies_on_this_thread()) return false;
  if (knob_number(Knob::plan_mover) != 0) return true;  // the user has decided
  return cores_exceed(network_.peer_count() + 1);
}

std::size_t LocalAccess::grain(const Peer&, std::size_t whole) const noexcept {
  return core_to_spare() || whole < inline_grain_bytes ? whole : inline_grain_bytes;
}

std::int64_t LocalAccess::keep(haul_ticket ticket, LocalPeer& peer) noexcept {
  std::size_t index = 0;
  while (index < copies_.size() && copies_[index].taken) ++index;
  if (index == copies_.size()) copies_.emplace_back();
  copies_[index] = Copy{ticket, &peer, true, false, 0};
  ++peer.copies;
  return static_cast<std::int64_t>(index) + 1;
}

int LocalAccess::test(std::int64_t ticket) noexcept {
  const auto index = static_cast<std::size_t>(ticket - 1);
  if (ticket <= 0 || index >= copies_.size() || !copies_[index].taken) return -FI_EINVAL;
  Copy& copy = copies_[index];
  if (!copy.over) {
    const int state = haul_test(copy.ticket);
    if (state == 0) return 0;
    copy.result = state > 0 ? 1 : ended(*copy.peer, state);
    --copy.peer->copies;
  }
  copy.taken = false;
  return copy.result;
}

bool LocalAccess::finish(LocalPeer& peer) noexcept {
  const std::uint64_t begin_ns = now_ns();
  for (Copy& copy : copies_) {
    if (peer.copies == 0) break;
    if (!copy.taken || copy.over || copy.peer != &peer) continue;
    const std::uint64_t waited_ns = now_ns() - begin_ns;
    const int state = haul_wait_for(copy.ticket, waited_ns < finish_ns ? finish_ns - waited_ns : 0);
    if (state == HAUL_ETIMEDOUT) continue;
    copy.over = true;
    copy.result = state == HAUL_OK ? 1 : ended(peer, state);
    --peer.copies;
  }
  return peer.copies == 0;
}

void LocalAccess::note_large(Path path, std::size_t bytes, std::uint64_t taken_ns) noexcept {
  if (observation_ != nullptr)
    observation_->large.count(path, bytes, taken_ns, copies_on_this_thread());
}

void LocalAccess::note_unmapped(const iovec* pieces, std::size_t count, std::size_t bytes,
                                bool sent) noexcept {
  if (observation_ != nullptr) observation_->slow.note(pieces, count, bytes, sent);
}

std::atomic<std::uint64_t>* LocalAccess::claim(Peer& peer, bool sender, unsigned index) noexcept {
  LocalPeer* known = find(peer);
  if (known == nullptr || index >= claim_count) return nullptr;
  const std::unique_ptr<SharedSegment>& segment = sender ? known->out : known->in;
  return segment != nullptr ? &segment->segment().claims[index].word : nullptr;
}

}  // namespace haul::fabric
