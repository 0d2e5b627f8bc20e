// Tickets: test, wait, ranges, progress.
#include <algorithm>

#include "api/convert.hpp"
#include "base/machine/clock.hpp"
#include "completion/ledger.hpp"
#include "execution/drive.hpp"
#include "execution/help.hpp"
#include "execution/inherit.hpp"
#include "gate/gate.hpp"
#include "request/rings.hpp"

namespace haul::api {
namespace {

// A ticket that names a tenancy of this process, resolved.
struct Named {
  Ring* ring = nullptr;  // nullptr: decided, or not a ticket of ours; `code` is then its outcome
  Code code = Code::ok;
};

[[gnu::noinline]] int fail_with(Code code, const char* sentence) noexcept {
  return fail(make_error(code, 0, "%s", sentence));
}

// The sentence of a request that failed.
[[gnu::noinline]] int report(Code code) noexcept {
  switch (code) {
    case Code::ok: return 0;
    case Code::fault:
      return fail_with(code,
                       "Part of the request's memory is not accessible; haul_progress() tells how "
                       "many bytes are good.");
    case Code::permission:
      return fail_with(
          code,
          "Access to another process's memory is refused: by the kernel (allow ptrace: "
          "same user, kernel.yama.ptrace_scope=0), or the grant does not allow it or "
          "was taken back.");
    case Code::peer_gone:
      return fail_with(code,
                       "The peer process is gone; haul_progress() tells how many bytes are good.");
    case Code::closed:
      return fail_with(code,
                       "haul_shutdown() was called or the space was closed before the request ran; "
                       "submit before that.");
    case Code::stale:
      return fail_with(code,
                       "The ticket is another process's, or its failure was forgotten because too "
                       "many went unobserved; test or wait for tickets sooner.");
    case Code::invalid:
      return fail_with(
          code,
          "Its request was refused for a wrong argument (haul_last_error() said which when it was "
          "submitted), or this is not one of haul's tickets; pass tickets as they were returned.");
    case Code::timed_out:
      return fail_with(code, "The time is up and the request is not finished; wait again.");
    default:
      return fail(make_error(
          code, 0, "The request failed: %s; haul_progress() tells how many bytes are good.",
          describe(code)));
  }
}

Named resolve(Ticket ticket) noexcept {
  thread_slot.burst_bytes = 0;
  if (ticket.cookie() == 0) return Named{nullptr, ticket.code()};
  if (ticket.cookie() != ring_table.cookie()) return Named{nullptr, Code::stale};
  if (ticket.ring() >= ring_table.count.load(std::memory_order_acquire))
    return Named{nullptr, Code::invalid};
  Ring& ring = ring_table.ring(ticket.ring());
  if (ticket.tenancy < Ring::first_seq || ticket.tenancy >= ring.next_seq())
    return Named{nullptr, Code::invalid};
  return Named{&ring, Code::ok};
}

// How a tenancy that is not pending ended. `observe`: the caller has then seen the failure.
[[gnu::noinline]] Code outcome(Ring& ring, std::uint64_t seq, bool observe) noexcept {
  const std::uint64_t word = ring.state_word(seq).load(std::memory_order_acquire);
  Code code = Code::ok;
  if (State::seq(word) == seq) {
    code = State::code(word);
    if (code != Code::ok) ring.import_failure(seq, code);
  } else if (!ledger_empty() || ledger_forgot(ring.index, seq)) {
    Failure failure;
    if (ledger_find(ring.index, seq, &failure)) {
      code = failure.code;
    } else if (ledger_forgot(ring.index, seq)) {
      code = Code::stale;
    }
  }
  if (code != Code::ok && observe) ledger_observe(ring.index, seq);
  return code;
}

// For calls that do not wait: has it ended? A request that a child of fork inherited unfinished, or
// whose caller drives a device, is moved only by the threads that look at its ticket: so this does.
bool ended_or_tended(Ring& ring, std::uint64_t seq) noexcept {
  if (ring.ended(seq)) return true;
  if (ring.nobody_moves(seq)) {
    tend_inherited(ring, seq, no_deadline);
  } else if (!gate.mover_wakes() || !may_cost_a_copy(ring, seq)) {
    drive(ring, seq);
  }
  return ring.ended(seq);
}

// Returns the code of a request that has ended, and sets the sentence if it failed.
int report(const Ring& ring, std::uint64_t seq, Code code) noexcept {
  if (code != Code::io || seq >= ring.inherited_below.load(std::memory_order_relaxed))
    return report(code);
  return fail_with(
      code,
      "The parent forked while this was under way, and the child cannot finish it (the "
      "memory is shared or another process's, or its sides overlap); wait for it "
      "before fork().");
}

// Two words, not a struct: a struct goes through memory, and its reload waits for the stores.
[[gnu::noinline]] int test_slowly(std::uint64_t where, std::uint64_t tenancy) noexcept {
  const Ticket ticket{where, tenancy};
  const Named named = resolve(ticket);
  if (named.ring == nullptr) return named.code == Code::ok ? 1 : report(named.code);
  if (!ended_or_tended(*named.ring, ticket.tenancy)) return 0;
  const Code code = outcome(*named.ring, ticket.tenancy, true);
  return code == Code::ok ? 1 : report(*named.ring, ticket.tenancy, code);
}

std::uint64_t deadline_after(std::uint64_t timeout_ns) noexcept {
  const std::uint64_t now = now_ns();
  return timeout_ns >= no_deadline - now ? no_deadline : now + timeout_ns;
}

int wait_until(Ticket ticket, std::uint64_t deadline_ns) noexcept {
  const Named named = resolve(ticket);
  if (named.ring == nullptr) return report(named.code);
  if (wait_for(*named.ring, ticket.tenancy, deadline_ns) == Code::timed_out &&
      !named.ring->ended(ticket.tenancy)) {
    return report(Code::timed_out);
  }
  return report(*named.ring, ticket.tenancy, outcome(*named.ring, ticket.tenancy, true));
}

// Good bytes of a request that is over.
std::uint64_t good_of_ended(Ring& ring, std::uint64_t seq, Code code) noexcept {
  Failure failure;
  if (code != Code::ok) {
    return ledger_find(ring.index, seq, &failure) ? failure.good_bytes : 0;
  }
  Job job;
  const bool known = ring.read(seq, &job);
  // Once the owner's next seq is a whole ring further on, it may have begun to refill the slot. (No
  // published request has length 0: that is what a ring shows whose parameters were lost in a
  // fork.)
  const bool here = known && job.chunks.length != 0 && ring.next_seq() < seq + Ring::slots;
  return here ? job.chunks.length : SIZE_MAX;
}

// Clips a range; false if it is empty.
bool range_end(std::size_t offset, std::size_t len, std::size_t* end) noexcept {
  *end = len > SIZE_MAX - offset ? SIZE_MAX : offset + len;
  return len != 0;
}

int wait_range_until(Ticket ticket, std::size_t offset, std::size_t len,
                     std::uint64_t deadline_ns) noexcept {
  const Named named = resolve(ticket);
  if (named.ring == nullptr) return report(named.code);
  std::size_t end = 0;
  if (!range_end(offset, len, &end)) return 0;
  const Code code = wait_for_range(*named.ring, ticket.tenancy, offset, end, deadline_ns);
  if (!named.ring->ended(ticket.tenancy)) {
    if (code != Code::timed_out) return 0;
    return fail_with(code,
                     "The time is up and not all bytes of the range are visible; wait again.");
  }
  return report(*named.ring, ticket.tenancy, outcome(*named.ring, ticket.tenancy, true));
}

}  // namespace

extern "C" HAUL_API int haul_test(haul_ticket ticket) {
  const std::uint64_t where = ticket.where, tenancy = ticket.tenancy;
  thread_slot.burst_bytes = 0;
  if (where == 0) return 1;
  const auto index = static_cast<std::uint32_t>(where);
  // A forged seq must not match a slot that was never used, nor lose its high bits in State::make.
  constexpr std::uint64_t end_seq = std::uint64_t{1} << 56;
  if (where >> 32 == ring_table.cookie() && tenancy - Ring::first_seq < end_seq - Ring::first_seq &&
      index < ring_table.count.load(std::memory_order_acquire)) [[likely]] {
    const std::uint64_t word =
        ring_table.ring(index).state_word(tenancy).load(std::memory_order_acquire);
    if (word == State::make(tenancy, Code::ok)) return 1;
  }
  return test_slowly(where, tenancy);
}

extern "C" HAUL_API int haul_wait(haul_ticket ticket) {
  if (ticket.where == 0) {
    thread_slot.burst_bytes = 0;
    return 0;
  }
  return wait_until(from_c(ticket), no_deadline);
}

extern "C" HAUL_API int haul_wait_for(haul_ticket ticket, std::uint64_t timeout_ns) {
  if (ticket.where == 0) {
    thread_slot.burst_bytes = 0;
    return 0;
  }
  return wait_until(from_c(ticket), deadline_after(timeout_ns));
}

extern "C" HAUL_API int haul_wait_range(haul_ticket ticket, std::size_t offset, std::size_t len) {
  return wait_range_until(from_c(ticket), offset, len, no_deadline);
}

extern "C" HAUL_API int haul_wait_range_for(haul_ticket ticket, std::size_t offset, std::size_t len,
                                            std::uint64_t timeout_ns) {
  return wait_range_until(from_c(ticket), offset, len, deadline_after(timeout_ns));
}

extern "C" HAUL_API int haul_test_range(haul_ticket ticket, std::size_t offset, std::size_t len) {
  const Named named = resolve(from_c(ticket));
  if (named.ring == nullptr) return named.code == Code::ok ? 1 : report(named.code);
  std::size_t end = 0;
  if (!range_end(offset, len, &end)) return 1;
  Job job;
  bool visible = false;
  if (named.ring->read(ticket.tenancy, &job)) {
    std::uint32_t missing = 0;
    visible = named.ring->tenancy(ticket.tenancy)
                  .range_visible(job.chunks, offset, std::min(end, job.chunks.length), &missing);
  }
  // What was read above holds only if the tenancy had not ended by then; if it had, its state
  // decides.
  if (!ended_or_tended(*named.ring, ticket.tenancy)) return visible ? 1 : 0;
  const Code code = outcome(*named.ring, ticket.tenancy, true);
  return code == Code::ok ? 1 : report(*named.ring, ticket.tenancy, code);
}

extern "C" HAUL_API int haul_progress(haul_ticket ticket, std::size_t* good_bytes) {
  if (good_bytes == nullptr)
    return fail(make_error(Code::invalid, 0, "good_bytes is NULL; pass a variable for the count."));
  const Named named = resolve(from_c(ticket));
  if (named.ring == nullptr) {
    *good_bytes = ticket.where >> 32 == 0 ? ticket.tenancy : 0;
    return named.code == Code::ok ? 1 : report(named.code);
  }
  Job job;
  *good_bytes = 0;
  if (named.ring->read(ticket.tenancy, &job)) {
    *good_bytes = named.ring->tenancy(ticket.tenancy).visible_prefix(job.chunks);
  }
  if (!ended_or_tended(*named.ring, ticket.tenancy)) return 0;
  const Code code = outcome(*named.ring, ticket.tenancy, false);
  *good_bytes = good_of_ended(*named.ring, ticket.tenancy, code);
  return code == Code::ok ? 1 : report(*named.ring, ticket.tenancy, code);
}

extern "C" HAUL_API int haul_drain(void) {
  thread_slot.burst_bytes = 0;
  Ring* ring = own_ring();
  if (ring == nullptr) return 0;
  const std::uint64_t end = ring->next_seq();
  Code first = Code::ok;
  for (std::uint64_t seq = ring->first_unfinished(end); seq < end; ++seq) {
    wait_for(*ring, seq, no_deadline);
    const Code code = outcome(*ring, seq, true);
    if (first == Code::ok) first = code;
  }
  return report(first);
}

}  // namespace haul::api
