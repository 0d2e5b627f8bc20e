// Fork, exit and shutdown: the moments when what is in flight must come to rest.
#include <pthread.h>

#include <cstdlib>

#include "completion/ledger.hpp"
#include "mover/grants.hpp"
#include "mover/help.hpp"
#include "mover/service_link.hpp"
#include "mover/submit.hpp"

namespace haul {
namespace {

constinit std::atomic<bool> handlers_set{false};

// Copies of other threads that were published before are finished; new ones are inline while the
// gate is held. So the child inherits quiet rings, and no copy is made in both.
void before_fork() noexcept {
  if (ring_table.cookie() == 0) return;
  thread_slot.forking = true;
  lock_movers();
  lock_service_link();
  hold_gate();
  // A crash handler that forks amid this very thread's copy cannot wait for that.
  if (thread_slot.carrying == 0) drain_all();
  rings_before_fork();
  lock_grants();
  ledger_lock();
}

void after_fork_in_parent() noexcept {
  if (!thread_slot.forking) return;
  thread_slot.forking = false;
  ledger_unlock();
  unlock_grants();
  rings_after_fork_parent();
  release_gate(After::open);
  unlock_service_link();
  unlock_movers();
}

void after_fork_in_child() noexcept {
  if (!thread_slot.forking) return;
  thread_slot.forking = false;
  ledger_unlock();  // first: what became of the parent's requests is looked up there
  rings_after_fork_child();
  forget_grants();
  forget_movers();
  forget_service_link();
  reset_gate_in_child();
  release_gate(After::open);
}

// What is in flight is finished; nothing is given to a mover any more, and there is none.
void finish_everything() noexcept {
  // A child by a bare clone has the parent's variables, but none of its threads.
  if (ring_table.cookie() == 0) return;
  hold_gate();
  drain_all();
  release_gate(After::shut);
  stop_movers();
  leave_service();
}

void at_exit() noexcept {
  // exit() from a signal handler amid a copy of this very thread: nothing can be waited for.
  if (thread_slot.carrying != 0) return;
  // Not closed: copies that other exit handlers make later are made inline.
  finish_everything();
}

// A process's first ring. Also the first one of a child by a bare clone, which inherited handlers
// and nothing else of use.
void table_made() noexcept {
  if (handlers_set.exchange(true, std::memory_order_relaxed)) {
    forbid_movers();
    forget_grants();
    forbid_service_link();
    remake_gate();
    remake_ledger();
    return;
  }
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  std::atexit(at_exit);
}

}  // namespace

Ring* ring_for_submit(Error* error) noexcept {
  if (Ring* ring = own_ring(); ring != nullptr) return ring;
  on_new_table(table_made);
  return attach_ring(error);
}

void shut_down() noexcept {
  gate.closed.store(true, std::memory_order_relaxed);
  finish_everything();
}

}  // namespace haul
