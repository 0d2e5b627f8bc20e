// Fork, exit and shutdown: the moments when what is in flight must come to rest.
//
// All three hold the gate shut (no request is published any more; copies are made inline), settle
// what is in flight for as long as it makes progress (settle.hpp), and say what had to be left.
// What follows differs: a fork puts the rings aside and opens the gate again in the parent, and in
// the child forgets every thread, lease, grant and link of the parent; exit leaves the service and
// stops the movers; shutdown does the same and leaves the gate shut for good.
#include <pthread.h>

#include <algorithm>
#include <cstdlib>

#include "base/machine/clock.hpp"
#include "base/thread/unforked.hpp"
#include "client/grants.hpp"
#include "client/link.hpp"
#include "completion/ledger.hpp"
#include "engine/registry.hpp"
#include "execution/help.hpp"
#include "gate/gate.hpp"
#include "memory/changes.hpp"
#include "mover/mover.hpp"
#include "mover/settle.hpp"
#include "mover/submit.hpp"

namespace haul {
namespace {

// What threads get to end in, and sections of a few system calls to finish in, when patience is
// over.
constexpr std::uint64_t grace_ns = 100'000'000;

// The process whose handlers are registered; 0: none are. Where it is another process, this is a
// child in which no handler of ours has run.
constinit std::atomic<pid_t> registered_in{0};

// What was published before is waited for, and new copies are inline while the gate is held. So the
// child inherits quiet rings as a rule, and no copy is made in both processes. When this returns it
// holds no lock of haul's, and it has waited for none whose holder could be waiting for the
// program: the program's own handlers may take locks under which other threads of its call haul.
//
// A signal handler that forks during this leaves the rest of it to its child, which also runs the
// handlers of its own fork. So each step counts what it has done in this process, and is undone by
// that count.
void before_fork() noexcept {
  if (ring_table.cookie() == 0) return;
  ++thread_slot.forking;
  const std::uint64_t patience_ns = mover_patience_ns();
  const std::uint64_t deadline_ns = now_ns() + patience_ns;
  hold_gate(patience_ns);
  // A crash handler that forks during this very thread's copy cannot wait for that copy.
  if (thread_slot.carrying == 0) {
    if (const Unsettled left = settle_all(patience_ns); left) tell_left("fork()", left);
  }
  begin_fork(std::max(deadline_ns, now_ns() + grace_ns));
  rings_before_fork();
}

void after_fork_in_parent() noexcept {
  if (thread_slot.forking == 0) return;
  if (--thread_slot.forking == 0) rings_after_fork_parent();
  end_fork();
  release_gate(After::open);
}

// In a child: no thread of the parent's is here to hold or do anything.
void forget_others() noexcept {
  for (std::size_t engine = 0; engine < engine_count(); ++engine) engine_at(engine).forget();
  forget_changes();
  forget_forks();
  forget_grants();
  forget_movers();
  forget_service_link();
  reset_gate_in_child();
}

void after_fork_in_child() noexcept {
  registered_in.store(os::process_id(), std::memory_order_relaxed);
  // Already done if a fork handler of the program's that ran before this one called haul
  // (ring_for_submit()).
  if (ring_table.cookie() != 0) return;
  if (thread_slot.forking == 0) {
    // There was no table when the fork began. If the parent has made one since, it is not ours.
    remake_ledger();
    forget_others();
    return;
  }
  --thread_slot.forking;
  // First, since what became of the parent's requests is looked up there.
  const bool whole_ledger = ledger_after_fork_child();
  const bool has_rings = rings_after_fork_child();
  if (has_rings && !whole_ledger)
    for_each_ring([](Ring& ring) { ledger_forget(ring.index, ring.next_seq()); });
  forget_others();
}

// Finishes what is in flight, stops the movers, and lets nothing be given to one any more.
void finish_everything(const char* who) noexcept {
  // The child of a bare clone() has the parent's variables, but none of its threads.
  if (ring_table.cookie() == 0) return;
  // A process that has given up once does not wait again.
  static constinit std::atomic<bool> gave_up{false};
  const std::uint64_t patience_ns =
      gave_up.load(std::memory_order_relaxed) ? 0 : mover_patience_ns();
  hold_gate(patience_ns);
  release_gate(After::shut);
  const Unsettled left = settle_all(patience_ns);
  if (left && !gave_up.exchange(true, std::memory_order_relaxed)) tell_left(who, left);
  const std::uint64_t deadline_ns = now_ns() + (left ? grace_ns : patience_ns);
  stop_movers(deadline_ns);
  leave_service(deadline_ns, !left);
}

void at_exit() noexcept {
  // exit() from a signal handler that interrupted a copy of this very thread: nothing can be waited
  // for.
  if (thread_slot.carrying != 0) return;
  // Not closed: copies that other exit handlers make later are made inline.
  finish_everything("exit()");
}

// Runs before a process's first ring is made, and before that of a bare clone()'s child, which
// inherited the handlers and nothing else of use. Two threads may be here at once: registering the
// handlers twice does no harm, while waiting for each other would, since registering calls malloc,
// which may be the program's.
void before_table() noexcept {
  const pid_t self = os::process_id();
  const pid_t known = registered_in.load(std::memory_order_acquire);
  if (known == self) return;
  if (known != 0) {
    forbid_movers();
    forget_grants();
    forget_forks();
    forbid_service_link();
    remake_gate();
    remake_ledger();
    registered_in.store(self, std::memory_order_relaxed);
    return;
  }
  on_ring_given_up(ring_was_given_up);
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  std::atexit(at_exit);
  // Release: a thread that finds it set goes on to make a table.
  registered_in.store(self, std::memory_order_release);
}

}  // namespace

Ring* ring_for_submit(Error* error) noexcept {
  if (Ring* ring = own_ring(); ring != nullptr) return ring;
  // A fork handler of the program's has run before ours in the child, and submits.
  if (thread_slot.forking != 0 && ring_table.cookie() == 0) after_fork_in_child();
  on_new_table(before_table);
  return attach_ring(error);
}

void shut_down() noexcept {
  gate.closed.store(true, std::memory_order_relaxed);
  finish_everything("haul_shutdown()");
}

}  // namespace haul
