// The road of a request from the asker to a mover, or back to the asker. The short road is for
// plain copies and fills; the long one plans.
#pragma once

#include "base/error.hpp"
#include "base/os.hpp"
#include "client/channel.hpp"
#include "completion/ticket.hpp"
#include "copy/cache_lines.hpp"
#include "gate/gate.hpp"
#include "mover/mover.hpp"
#include "request/request.hpp"
#include "request/rights.hpp"
#include "request/rings.hpp"

namespace haul {

// Plans a checked request and carries the plan out. A refusal (closed, again, no memory) is a
// decided ticket with *error filled in; so is the outcome of a request that the caller's thread
// ran, without. Blocks only to run it inline.
Ticket submit(const Request& request, Error* error) noexcept;

// What submit() would do, and why.
struct Explanation {
  plan::Plan plan;
  plan::Inputs inputs;
  plan::Reasons reasons;
};
void explain(const Request& request, Explanation* explanation) noexcept;

// Publishes on the calling thread's ring (there is room, the thread is marked busy) and rings the
// bell if need be. False if the gate is held: the caller's thread must do it.
inline bool publish(Ring& ring, Job& job, const Extras* extras, Ticket* ticket) noexcept {
  ring.publishing.store(true, std::memory_order_relaxed);
  os::compiler_barrier();  // for the CPU, hold_gate() has a membarrier
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
      os::compiler_barrier();  // for the CPU, the service that falls asleep has a global membarrier
      if (bell->load(std::memory_order_relaxed) != 0) [[unlikely]]
        ring_service_bell(bell);
    }
  }
  // Release: pairs with hold_gate(), whose caller then waits for what was published.
  ring.publishing.store(false, std::memory_order_release);
  os::compiler_barrier();  // for the CPU, the mover that falls asleep has a membarrier
  if (!job.service && gate.asleep.load(std::memory_order_relaxed) != 0) [[unlikely]]
    ring_doorbell();
  return open;
}

// Both sides?
inline bool service_maps(std::uintptr_t dst, std::uintptr_t src, std::size_t length) noexcept {
  return gate.maps(dst, length) && gate.maps(src, length);
}

// Adds a request to the thread's burst: what it submitted since it last looked at a ticket. Does
// the burst make this one worth handing over?
inline bool burst_reached(std::size_t length, bool mapped) noexcept {
  const std::atomic<std::uint64_t>& from = mapped ? gate.mapped_from : gate.mover_from;
  const std::atomic<std::uint64_t>& piece = mapped ? gate.mapped_piece_from : gate.piece_from;
  return thread_slot.burst_bytes >= from.load(std::memory_order_relaxed) &&
         length >= piece.load(std::memory_order_relaxed);
}
inline bool burst_pays(std::size_t length, bool mapped) noexcept {
  thread_slot.burst_bytes += length;
  return burst_reached(length, mapped);
}

// The short road: true and *ticket if a plain request (this process, cacheable, no flags) went to
// the mover; `mapped` as service_maps() says. False: take the long one.
inline bool publish_plain(Operation operation, std::uintptr_t dst, std::uint64_t src_or_pattern,
                          std::size_t length, bool mapped, Ticket* ticket) noexcept {
  const plan::MoverState state = gate.state.load(std::memory_order_relaxed);
  const bool ready = mapped ? thread_slot.shared
                            : state == plan::MoverState::awake || state == plan::MoverState::asleep;
  if (!ready) return false;
  if (const std::uint8_t special = gate.special.load(std::memory_order_relaxed); special != 0)
      [[unlikely]] {
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
    return false;  // half done by a service that dies, it could not be redone
  job.service = mapped;
  job.chunks = one_direction
                   ? Chunks::single(length, block_log2)
                   : plan::cut_for_mover(
                         length, gate.min_chunk_bytes.load(std::memory_order_relaxed), block_log2);
  return publish(*ring, job, nullptr, ticket);
}

// How many bytes of a plain copy that the caller is about to make itself an awake mover would have
// been worth: all or, mostly, 0. `src` is nullptr for a fill.
inline std::size_t worth_handing_over(const void* src, std::size_t length, bool mapped) noexcept {
  const std::atomic<std::uint64_t>& below = mapped ? gate.mapped_below : gate.worth_below;
  const std::atomic<std::uint64_t>& from = mapped ? gate.mapped_from : gate.worth_from;
  if (length < below.load(std::memory_order_relaxed)) return 0;
  if (length >= from.load(std::memory_order_relaxed)) return length;
  return src != nullptr && copy::in_memory(src, length) ? length : 0;
}

// Notes a request that the caller carried out itself, and wakes the mover (the node's service for
// memory that it has mapped) when enough bytes were worth handing over.
void note_inline(std::size_t worth, bool mapped) noexcept;

// Hooks that the first ring of a process sets: fork and exit handlers. Idempotent; called by
// submit() before it attaches a ring.
Ring* ring_for_submit(Error* error) noexcept;

// Finishes everything, stops the movers; submits are refused from now on.
void shut_down() noexcept;

}  // namespace haul
