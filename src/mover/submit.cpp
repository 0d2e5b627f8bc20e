// The long road: plan, then publish or run here.
#include "mover/submit.hpp"

#include <optional>

#include "client/link.hpp"
#include "engine/registry.hpp"
#include "engine/uffd/uffd.hpp"
#include "execution/caller.hpp"
#include "execution/drive.hpp"
#include "execution/help.hpp"
#include "execution/inherit.hpp"
#include "execution/refusals.hpp"
#include "gate/gate.hpp"
#include "mover/mover.hpp"
#include "mover/request_view.hpp"
#include "mover/short_road.hpp"
#include "request/rights.hpp"
#include "request/sharing.hpp"

namespace haul {
namespace {

// Adds to what the request says what was planned, and where its bytes lie. False if the ring's
// arena has no room for the segments.
bool fill_job(const Request& request, const plan::Plan& plan, Ring& ring, Job* job) noexcept {
  // Of a request that the service does, a waiter that helps does its part with the CPU.
  job->service = plan.mover == plan::Mover::service;
  job->engine = job->service ? 0 : static_cast<std::uint8_t>(plan.engine);
  job->chunks = plan.chunks;
  job->dst = request.dst->address;
  if (request.operation == Operation::copy) job->src_or_pattern = request.src->address;
  if (!request.vector()) return true;
  Segment segment;
  std::size_t length = 0;
  for (SegmentWalk walk(request); walk.next(&segment, &length);) ++job->segment_count;
  const std::int64_t first = ring.reserve_segments(job->segment_count);
  if (first < 0) return false;
  job->segment_first = static_cast<std::uint32_t>(first);
  Segment* to = ring.segments(job->segment_first);
  for (SegmentWalk walk(request); walk.next(&segment, &length);) *to++ = segment;
  return true;
}

Ticket refuse(Error* error, const Error& why) noexcept {
  *error = why;
  return Ticket::decided(why.code, 0);
}

// Makes sure that what the plan gives to a mover will find one. False: the mover cannot be had now.
bool mover_ready(plan::Mover mover) noexcept {
  if (mover == plan::Mover::service) {
    if (gate.service_bell.load(std::memory_order_relaxed) == nullptr) look_for_service();
    return share_own_ring();
  }
  const plan::MoverState state = gate.state.load(std::memory_order_relaxed);
  if (state == plan::MoverState::awake || state == plan::MoverState::asleep) return true;
  Error ignored;
  return wake_mover(&ignored) == Code::ok;
}

// Room in the completion queue that is the calling thread's to give back, while a request runs on
// it.
class Reservation {
 public:
  Reservation() noexcept : before_(thread_slot.reserved) { thread_slot.reserved = &mark_; }
  ~Reservation() { thread_slot.reserved = before_; }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  // An inline copy that faulted may have been left by siglongjmp(): gives its room back.
  static void recover(Ring& ring) noexcept {
    if (thread_slot.reserved == nullptr ||
        !StackMark::left_behind(thread_slot.reserved, stack_pointer()))
      return;
    thread_slot.reserved = nullptr;
    ring.completions.cancel();
  }

 private:
  StackMark mark_;
  const StackMark* before_;  // of the call that this thread's signal handler interrupted
};

// Room in the completion queue, if the request wants an entry there.
Code reserve_completion(const Request& request, Ring* ring, bool nested, Error* error) noexcept {
  if (!request.complete) return Code::ok;
  if (nested) {
    *error = make_error(Code::again, 0,
                        "A signal handler interrupted a haul call of this thread (or left it by "
                        "longjmp()), so its completion queue cannot be used; submit without "
                        "HAUL_COMPLETE, or later.");
  } else if (Reservation::recover(*ring); !ring->completions.reserve()) {
    *error = make_error(Code::again, 0,
                        "The completion queue is full (%u entries); call haul_reap() first.",
                        CompletionQueue::capacity);
  } else {
    return Code::ok;
  }
  return error->code;
}

// Gives the request to a mover, or to a device that its caller drives.
HandOver hand_over(const Request& request, const plan::Plan& plan, Ring& ring,
                   Ticket* ticket) noexcept {
  const bool is_driven = plan.mover == plan::Mover::caller;
  if (!is_driven && !mover_ready(plan.mover)) return HandOver::no_mover;
  Job job = job_of(request);
  if (names_peer(request)) {
    // The mover may have been made just now, by another thread.
    job.rights = rights_number();
    if (job.rights == nobodys || (!is_driven && job.rights != mover_rights()))
      return HandOver::no_mover;
  }
  if (!fill_job(request, plan, ring, &job)) return HandOver::no_room;
  const bool has_extras = request.notify != nullptr || request.complete;
  const Extras extras = extras_of(request);
  if (publish(ring, job, has_extras ? &extras : nullptr, ticket, is_driven)) return HandOver::done;
  ring.cancel_segments();
  return HandOver::no_mover;
}

}  // namespace

bool publish_driven(Operation operation, std::uintptr_t dst, std::uint64_t src_or_pattern,
                    std::size_t length, Ticket* ticket) noexcept {
  Job job;
  job.engine = gate.driven_engine.load(std::memory_order_relaxed);
  if (job.engine == Gate::no_engine || length == 0 || keyed_apart()) return false;
  const Engine& engine = engine_at(job.engine);
  const bool copy = operation == Operation::copy;
  if (!engine.available() || !engine.reaches(operation, self_space, self_space) ||
      (copy && overlaps(dst, src_or_pattern, length)))
    return false;
  BusyThread busy;
  Ring* const ring = own_ring();
  if (!busy || ring == nullptr || !ring->has_room()) return false;
  job.operation = operation;
  job.dst = dst;
  job.src_or_pattern = src_or_pattern;
  job.chunks = plan::cut_for_device(length, false, gate.block_log2.load(std::memory_order_relaxed));
  if (!publish(*ring, job, nullptr, ticket, true)) return false;
  busy.end();
  drive_new(*ring, job);
  return true;
}

namespace {

bool is_mapped(const Request& request) noexcept {
  return request.dst_space == self_space && request.src_space == self_space && !request.vector() &&
         service_maps(
             request.dst->address,
             request.operation == Operation::copy ? request.src->address : request.dst->address,
             request.length);
}

// Is a copy for a mover wherever its source lies?
bool is_large(const Request& request) noexcept {
  const auto nowhere = [] { return plan::Access::cached; };  // the long road looks
  const std::uint64_t bytes = plan::counted_bytes(request.operation, request.length);
  return plan::route(gate, gate.candidate(is_mapped(request)), bytes, thread_slot.burst_bytes,
                     nowhere)
             .mover != plan::Mover::caller;
}

// Does a device take every request of this length, as the settings say?
bool is_driven_by_setting(std::size_t length) noexcept {
  return (gate.special.load(std::memory_order_relaxed) & Gate::by_device) != 0 &&
         gate.driven_engine.load(std::memory_order_relaxed) != Gate::no_engine &&
         length >= gate.device_from;
}

// Would the plan surely be the short road's: this process, nothing special, and the mover with the
// engine cpu, or the caller with the device that the settings name?
bool is_plain(const Request& request) noexcept {
  const bool ordinary = !request.fence && !request.checked && !request.complete &&
                        !request.vector() && request.notify == nullptr &&
                        request.dst_space == self_space && request.src_space == self_space &&
                        request.dst_affinity == Affinity::cacheable &&
                        request.src_affinity == Affinity::cacheable;
  return ordinary && !request.force_inline &&
         (request.force_dedicated || is_driven_by_setting(request.length) ||
          (request.operation == Operation::copy && is_large(request)));
}

// Counts bytes that the caller's thread carried out though they were worth a mover, and wakes one
// when they are enough.
void invest(std::uint64_t worth, bool mapped) noexcept {
  if (worth == 0) return;
  const BusyThread busy;
  if (!busy) return;
  thread_slot.invested += worth;
  if (thread_slot.invested < invest_bytes) return;
  thread_slot.invested = 0;
  if (mapped) {
    wake_service();
    return;
  }
  Error ignored;
  if (ring_for_submit(&ignored) != nullptr) wake_mover(&ignored);
}

// The bytes of a request that were worth an awake mover.
std::uint64_t worth_of(const Request& request) noexcept {
  return worth_waking(plan::counted_bytes(request.operation, request.length), is_mapped(request),
                      [] { return plan::Access::cached; });
}

Ticket plan_and_do(const Request& request, Error* error, bool* ran_inline) noexcept {
  Error no_ring;
  Ring* ring = nullptr;
  bool nested = true;
  if (const BusyThread busy; busy) {
    nested = false;
    ring = ring_for_submit(&no_ring);
    // What a child inherited unfinished nobody but a looker ends: it must not block the ring.
    if (ring != nullptr && (request.fence || !ring->has_room())) tend_all_inherited(*ring);
  }
  if (request.complete && !nested && ring == nullptr) return refuse(error, no_ring);
  plan::Inputs inputs;
  view_request(request, ring, thread_slot.burst_bytes, &inputs);  // reads the program's memory
  BusyThread busy;
  if (reserve_completion(request, ring, nested, error) != Code::ok) {
    return Ticket::decided(error->code, 0);
  }
  std::optional<Reservation> reservation;
  if (request.complete) reservation.emplace();
  const auto back_out = [&](const Error& why) {
    if (request.complete) ring->completions.cancel();
    return refuse(error, why);
  };
  inputs.ring_full = ring == nullptr || !ring->has_room();
  plan::Plan plan = make_plan(inputs, nullptr);
  if (plan.engine < 0) {
    return back_out(
        inputs.request.device_memory
            ? no_device(request, inputs)
            : make_error(Code::not_supported, 0,
                         "No engine here can do this request; haul info names what is missing."));
  }
  HandOver result = inputs.ring_full ? HandOver::no_room : HandOver::no_mover;
  Ticket ticket;
  const bool possible = inputs.request.granted
                            ? inputs.request.service_reach != plan::ServiceReach::none
                            : !(inputs.request.device_memory && inputs.request.other_rights);
  bool driven = plan.mover == plan::Mover::caller &&
                !engine_at(static_cast<std::size_t>(plan.engine)).facts().synchronous;
  if ((driven || plan.mover != plan::Mover::caller) && !inputs.ring_full && !inputs.held &&
      possible) {
    result = hand_over(request, plan, *ring, &ticket);
    // A device whose memory no CPU reaches is driven by the caller, rather than not at all.
    if (result == HandOver::no_mover && inputs.request.device_memory && !driven) {
      plan.mover = plan::Mover::caller;
      plan.waits = request.notify != nullptr;
      driven = true;
      result = hand_over(request, plan, *ring, &ticket);
    }
  }
  if (result == HandOver::done) {
    busy.end();
    if (driven) drive(*ring, ticket.tenancy);
    if (driven && inputs.request.device_memory) invest(worth_of(request), false);
    if (plan.waits) wait_for(*ring, ticket.tenancy, no_deadline);
    return ticket;
  }
  if (inputs.request.device_memory) return back_out(no_device_now(inputs, result));
  if (inputs.request.granted) {
    if (!inputs.service.attached) look_for_service();
    return back_out(no_grant_now(inputs, result));
  }
  if (result == HandOver::no_room && request.nonblock && !request.force_inline && ring != nullptr) {
    return back_out(
        make_error(Code::again, 0,
                   "This thread's ring is full (%llu requests, %u segments); wait for some first.",
                   static_cast<unsigned long long>(Ring::slots), Ring::segment_slots));
  }
  // The pending requests may include one that this very thread was copying when a handler got in.
  const bool in_handler = nested || thread_slot.carrying != 0;
  if (Ring* own = own_ring(); request.fence && in_handler && own != nullptr && !own->quiet()) {
    return back_out(
        make_error(Code::again, 0,
                   "A signal handler interrupted a haul call of this thread, so a fence "
                   "cannot wait here; submit it later."));
  }
  *ran_inline = true;
  busy.end();
  // What the service would have done through the kernel, the caller does directly.
  const auto engine =
      plan.mover == plan::Mover::service ? 0 : static_cast<std::size_t>(plan.engine);
  return run_inline(request, engine, ring);
}

}  // namespace

Ticket submit(const Request& request, Error* error) noexcept {
  if (gate.closed.load(std::memory_order_relaxed)) {
    return refuse(error,
                  make_error(Code::closed, 0, "haul_shutdown() was called; submit before it."));
  }
  if (is_plain(request)) {
    const bool copy = request.operation == Operation::copy;
    Ticket published;
    if (publish_plain(request.operation, request.dst->address,
                      copy ? request.src->address : request.pattern, request.length,
                      is_mapped(request), &published)) {
      return published;
    }
  }
  bool ran_inline = false;
  const Ticket ticket = plan_and_do(request, error, &ran_inline);
  if (ran_inline && !request.force_inline) note_inline(worth_of(request), is_mapped(request));
  return ticket;
}

namespace {

// Of this thread, for what libhaul-mem.so gives to a mover and nobody else does: nullptr, none
// takes it now. `busy` is this thread's.
Ring* ring_for_mover(const BusyThread& busy) noexcept {
  Error error;
  if (!busy || gate.closed.load(std::memory_order_relaxed)) return nullptr;
  Ring* const ring = ring_for_submit(&error);
  const bool ready = ring != nullptr && ring->has_room() && mover_ready(plan::Mover::thread);
  return ready ? ring : nullptr;
}

}  // namespace

bool submit_deferred(const HaulPrivateDeferred& call, Ticket* ticket) noexcept {
  // A chunk begins where a page does, or where a block does whose page lies aside.
  const std::uint32_t block_log2 = call.asides != nullptr ? 21 : 12;
  // Nobody helps with such chunks, and each may tear a huge page at either end.
  constexpr std::size_t least_chunk_bytes = std::size_t{16} << 20;
  const BusyThread busy;
  Ring* const ring = ring_for_mover(busy);
  if (ring == nullptr) return false;
  name_userfault(call.userfault, call.may_make_huge, call.turnstile);
  if (call.asides != nullptr) name_asides(*call.asides);
  Job job;
  job.engine = uffd_index;
  job.dst = call.dst;
  job.src_or_pattern = call.src;
  if (call.fills) {
    job.operation = Operation::fill;
    job.pattern_bytes = 1;
    job.src_or_pattern = call.value * 0x0101010101010101u;
  }
  job.chunks = plan::cut_for_mover(call.length, least_chunk_bytes, block_log2);
  return publish(*ring, job, nullptr, ticket);
}

bool force_copy(std::uintptr_t dst, std::uintptr_t src, std::size_t length,
                Ticket* ticket) noexcept {
  constexpr std::uint32_t page_block_log2 = 12;
  // Whoever touches the memory helps.
  constexpr std::size_t least_chunk_bytes = std::size_t{1} << 20;
  const BusyThread busy;
  Ring* const ring = ring_for_mover(busy);
  if (ring == nullptr) return false;
  Job job;
  job.engine = procmem_index;
  job.checked = true;  // so that the CPU does not take over: it would fault
  job.dst = dst;
  job.src_or_pattern = src;
  job.chunks = plan::cut_for_mover(length, least_chunk_bytes, page_block_log2);
  return publish(*ring, job, nullptr, ticket);
}

void explain(const Request& request, Explanation* explanation) noexcept {
  const std::uint64_t burst_bytes =
      thread_slot.burst_bytes + plan::counted_bytes(request.operation, request.length);
  view_request(request, own_ring(), burst_bytes, &explanation->inputs);
  explanation->plan = make_plan(explanation->inputs, &explanation->reasons);
}

void note_inline(std::uint64_t worth, bool mapped) noexcept {
  if (Ring* ring = thread_slot.ring; ring != nullptr) {
    ring->inlined.store(ring->inlined.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  }
  invest(worth, mapped);
}

}  // namespace haul
