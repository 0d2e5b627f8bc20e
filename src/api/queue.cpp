// The calling thread's completion queue.
#include <haul/haul.h>

#include <cstddef>

#include "api/convert.hpp"
#include "base/sync/backoff.hpp"
#include "completion/ledger.hpp"
#include "execution/drive.hpp"
#include "execution/help.hpp"
#include "gate/gate.hpp"
#include "mover/mover.hpp"
#include "mover/submit.hpp"

namespace haul::api {
namespace {

// The state of a request follows its entry by a few instructions; an entry that is handed out must
// be done by every test.
void await_state(const Ticket& ticket) noexcept {
  if (ticket.cookie() == 0) return;
  const Ring& ring = ring_table.ring(ticket.ring());
  for (Backoff backoff;
       State::seq(ring.state_word(ticket.tenancy).load(std::memory_order_acquire)) <
           ticket.tenancy &&
       ticket.tenancy >= ring.inherited_below.load(std::memory_order_relaxed);)
    backoff.pause();
}

// Nobody looks at tickets while their thread waits for an event: what it drives itself becomes a
// mover's, or, where there is none, ends now.
void leave_to_mover(Ring& ring) noexcept {
  if (!any_driven(ring)) return;
  Error ignored;
  if (wake_mover(&ignored) != Code::ok) drain(ring, ring.next_seq());
}

Ring* ring_or_fail(int* result) noexcept {
  Error error;
  Ring* ring = ring_for_submit(&error);
  if (ring == nullptr) *result = fail(error);
  return ring;
}

}  // namespace

extern "C" HAUL_API int haul_reap(haul_completion* entries, std::size_t max) {
  if (entries == nullptr || max == 0) {
    return fail(
        make_error(Code::invalid, 0,
                   "haul_reap() needs room for one entry or more; pass an array and its length."));
  }
  thread_slot.burst_bytes = 0;
  Ring* ring = own_ring();
  if (ring == nullptr || thread_slot.busy)
    return 0;  // busy: a signal handler has interrupted a submit or reap
  if (ring->completions.front() == nullptr) drive_all(*ring, !gate.mover_wakes());
  std::size_t count = 0;
  // If a signal handler forks during this, the entries not handed out yet are the parent's.
  const std::uint32_t survived = forks_survived.load(std::memory_order_relaxed);
  while (count < max && count < CompletionQueue::capacity) {
    const std::uint64_t position = ring->completions.position();
    const Completion* front = ring->completions.front();
    if (front == nullptr) break;
    const Completion completion = *front;
    await_state(completion.ticket);
    {
      const BusyThread busy;
      if (!ring->completions.pop(position)) break;
    }
    if (forks_survived.load(std::memory_order_relaxed) != survived) break;
    if (completion.code != Code::ok && completion.ticket.cookie() != 0) {
      ledger_observe(completion.ticket.ring(), completion.ticket.tenancy);
    }
    haul_completion& entry = entries[count++];
    entry = haul_completion{to_c(completion.ticket), completion.user_data, completion.good_bytes,
                            to_c(completion.code), 0};
    if (completion.callback != nullptr) {
      reinterpret_cast<haul_callback>(completion.callback)(&entry, completion.context);
    }
  }
  return static_cast<int>(count);
}

extern "C" HAUL_API int haul_reap_eventfd(void) {
  int result = 0;
  Ring* ring = ring_or_fail(&result);
  if (ring == nullptr) return result;
  const int fd = ring->completions.descriptor();
  if (fd >= 0) return fd;
  return fail(
      make_error(Code::no_memory, -fd,
                 "No event descriptor can be made (%s); raise the limit on open files (ulimit -n).",
                 describe_errno(-fd)));
}

extern "C" HAUL_API int haul_reap_arm(void) {
  int result = 0;
  Ring* ring = ring_or_fail(&result);
  if (ring == nullptr) return result;
  leave_to_mover(*ring);
  switch (ring->completions.arm()) {
    case CompletionQueue::Armed::armed: return 0;
    case CompletionQueue::Armed::entry_waits: return 1;
    case CompletionQueue::Armed::event_lost: break;
  }
  return fail(make_error(Code::closed, 0,
                         "The program has closed the descriptor of this thread's completion queue, "
                         "which is haul's; ask haul_reap_eventfd() for a new one, and poll that."));
}

}  // namespace haul::api
