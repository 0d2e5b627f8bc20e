// The short road: haul_copy() and haul_fill() when nothing is out of the ordinary.
//
// A plain request (within this process, cacheable, without flags) either is made by its caller here
// and now, or is written into the calling thread's ring, where a mover that is awake finds it. In
// both cases its thread takes no lock, allocates nothing and makes no system call. Whatever else
// comes up (no ring yet, a full one, no mover yet, a gate that is held, a setting that wants
// another engine) is left to the long road (submit.hpp): functions here then return false, having
// done nothing but count.
//
// Everything is inline, since a copy of 4 KiB takes about as long as a few calls and cache misses.
// What the short road reads of the process's state lies in the gate's one line, which changes only
// with the movers' state.
//
// Publishing and the gate: a thread raises its ring's `publishing`, then looks at `held`; whoever
// holds the gate stores `held`, issues a barrier on all CPUs, then looks at `publishing`
// (hold_gate()). So one of the two sees the other, and the fast side pays for no fence. The same
// pattern, with the same barrier on the slow side, tells a mover or service that is falling asleep
// of what was published at that moment: publish first, then look whether to ring its bell.
#pragma once

#include "base/os/os.hpp"
#include "client/link_socket.hpp"
#include "completion/ticket.hpp"
#include "copy/copy.hpp"
#include "execution/caller.hpp"
#include "gate/gate.hpp"
#include "memory/new_pages.hpp"
#include "mover/access.hpp"
#include "mover/mover.hpp"
#include "plan/plan.hpp"
#include "request/request.hpp"
#include "request/rights.hpp"
#include "request/rings.hpp"

namespace haul {

// Publishes on the calling thread's ring (which has room; the thread is marked busy) and rings the
// bell if need be; not for a request that its caller drives (execution/drive.hpp). False if the
// gate is held: the caller must then carry it out.
inline bool publish(Ring& ring, Job& job, const Extras* extras, Ticket* ticket,
                    bool is_driven = false) noexcept {
  ring.publishing.store(true, std::memory_order_relaxed);
  os::compiler_barrier();  // for the CPU, hold_gate() issues a membarrier
  bool open = !gate.held.load(std::memory_order_relaxed);
  std::atomic<std::uint32_t>* bell = nullptr;
  if (job.service) {
    bell = gate.service_bell.load(std::memory_order_acquire);
    open = open && bell != nullptr;
  }
  if (open) [[likely]] {
    ring.publish(job, extras);
    *ticket = Ticket::pending(ring.cookie, ring.index, job.seq);
    if (job.service) {
      os::compiler_barrier();  // for the CPU, a service falling asleep issues a global membarrier
      if (bell->load(std::memory_order_relaxed) != 0) [[unlikely]]
        ring_service_bell(bell);
    }
  }
  // Release: pairs with hold_gate(), whose caller then waits for what was published.
  ring.publishing.store(false, std::memory_order_release);
  os::compiler_barrier();  // for the CPU, a mover falling asleep issues a membarrier
  if (!job.service && !is_driven && gate.asleep.load(std::memory_order_relaxed) != 0) [[unlikely]]
    ring_doorbell();
  return open;
}

// Does the node's service map both sides?
inline bool service_maps(std::uintptr_t dst, std::uintptr_t src, std::size_t length) noexcept {
  return gate.maps(dst, length) && gate.maps(src, length);
}

// True and *ticket if a plain request went to the device that the settings name, which its caller
// drives (execution/drive.hpp). False: the long road must look at it.
bool publish_driven(Operation operation, std::uintptr_t dst, std::uint64_t src_or_pattern,
                    std::size_t length, Ticket* ticket) noexcept;

// True and *ticket if a plain request (this process, cacheable, no flags) went to the mover;
// `mapped` as service_maps() says. False: it must take the long road.
inline bool publish_plain(Operation operation, std::uintptr_t dst, std::uint64_t src_or_pattern,
                          std::size_t length, bool mapped, Ticket* ticket) noexcept {
  const std::uint8_t special = gate.special.load(std::memory_order_relaxed);
  if ((special & Gate::by_device) != 0 && length >= gate.device_from) [[unlikely]]
    return publish_driven(operation, dst, src_or_pattern, length, ticket);
  const plan::MoverState state = gate.state.load(std::memory_order_relaxed);
  const bool ready = mapped ? thread_slot.shared
                            : state == plan::MoverState::awake || state == plan::MoverState::asleep;
  if (!ready) return false;
  if (special != 0) [[unlikely]] {
    if ((special & Gate::by_plan) != 0 || keyed_apart()) return false;
  }
  const BusyThread busy;
  Ring* ring = own_ring();
  if (!busy || ring == nullptr || !ring->has_room()) return false;
  Job job;
  job.operation = operation;
  job.dst = dst;
  job.src_or_pattern = src_or_pattern;
  const std::uint32_t block_log2 = gate.block_log2.load(std::memory_order_relaxed);
  const bool one_direction = operation == Operation::copy && overlaps(dst, src_or_pattern, length);
  if (mapped && one_direction)
    return false;  // half done by a dying service, it could not be redone
  job.service = mapped;
  job.chunks = one_direction
                   ? Chunks::single(length, block_log2)
                   : plan::cut_for_mover(
                         length, gate.min_chunk_bytes.load(std::memory_order_relaxed), block_log2);
  return publish(*ring, job, nullptr, ticket);
}

// Does the caller carry out a plain request of this many counted bytes itself? Adds it to the
// burst. False after haul_shutdown(): the long road refuses the request.
template <class Probe>
inline bool is_callers(std::uint64_t bytes, bool mapped, Probe access) noexcept {
  if (gate.closed.load(std::memory_order_relaxed)) [[unlikely]]
    return false;
  thread_slot.burst_bytes += bytes;
  const auto leaves = [=] {
    // The long road looks for itself.
    const std::uint8_t special = gate.special.load(std::memory_order_relaxed);
    if ((special & Gate::by_plan) != 0 ||
        ((special & Gate::by_device) != 0 && bytes >= gate.device_from))
      return plan::Access::in_memory;
    return access();
  };
  return plan::route(gate, gate.candidate(mapped), bytes, thread_slot.burst_bytes, leaves).mover ==
         plan::Mover::caller;
}

// How many of the bytes that the caller is about to move itself were worth an awake mover: all or,
// mostly, none.
template <class Probe>
inline std::uint64_t worth_waking(std::uint64_t bytes, bool mapped, Probe access) noexcept {
  const bool worth = mapped ? plan::is_worth_waking(gate.mapped, bytes, access)
                            : plan::is_worth_waking(gate.worth, bytes, access);
  return worth ? bytes : 0;
}

// Notes a request that the caller carried out itself, and wakes the mover (the node's service for
// memory that it has mapped) when enough bytes were worth handing over.
void note_inline(std::uint64_t worth, bool mapped) noexcept;

// Makes a copy or gives it to a mover. The arguments have been checked.
[[gnu::always_inline]] inline bool short_copy(void* dst, const void* src, std::size_t length,
                                              Ticket* ticket) noexcept {
  const auto to = reinterpret_cast<std::uintptr_t>(dst);
  const auto from = reinterpret_cast<std::uintptr_t>(src);
  const bool mapped = service_maps(to, from, length);
  const std::uint64_t bytes = plan::counted_bytes(Operation::copy, length);
  const auto access = [=] { return access_of_copy(to, length, from, length); };
  if (!is_callers(bytes, mapped, access))
    return publish_plain(Operation::copy, to, from, length, mapped, ticket);
  // This looks at the memory before the copy changes the answer.
  const std::uint64_t worth = worth_waking(bytes, mapped, access);
  if (length < new_pages_from_bytes) [[likely]] {
    copy::move_bytes(dst, src, length, Affinity::cacheable, Affinity::cacheable);
  } else {
    move_plain(Operation::copy, to, from, 0, length);
  }
  note_inline(worth, mapped);
  *ticket = Ticket::decided(Code::ok, length);
  return true;
}

// The same for a fill, which has no source that could be far away. (Whether its pages were missing
// is not seen afterwards, so it does not count towards waking a mover.)
[[gnu::always_inline]] inline bool short_fill(void* dst, std::uint64_t pattern,
                                              unsigned pattern_bytes, std::size_t length,
                                              Ticket* ticket) noexcept {
  const auto to = reinterpret_cast<std::uintptr_t>(dst);
  const bool mapped = service_maps(to, to, length);
  const std::uint64_t bytes = plan::counted_bytes(Operation::fill, length);
  const auto access = [=] { return access_of_fill(to, length); };
  if (!is_callers(bytes, mapped, access)) {
    return publish_plain(Operation::fill, to, copy::widen_pattern(pattern, pattern_bytes), length,
                         mapped, ticket);
  }
  if (length < new_pages_from_bytes) [[likely]] {
    copy::fill_bytes(dst, length, pattern, pattern_bytes, Affinity::cacheable);
  } else {
    move_plain(Operation::fill, to, copy::widen_pattern(pattern, pattern_bytes), pattern_bytes,
               length);
  }
  note_inline(worth_waking(bytes, mapped, [] { return plan::Access::cached; }), mapped);
  *ticket = Ticket::decided(Code::ok, length);
  return true;
}

}  // namespace haul
